import { generateKeyPairSync, sign } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58 } from '@scure/base';
import type { SolanaWallet, Web3Credentials } from '@supabase/auth-js';

type EthereumWallet = NonNullable<
  Exclude<Extract<Web3Credentials, { readonly chain: 'ethereum' }>, { readonly message: string }>['wallet']
>;

/** An account that signs as a browser's wallet does. */
interface EthereumAccount {
  /** In lower case. */
  readonly address: string;
  readonly wallet: EthereumWallet;
  sign(message: string): `0x${string}`;
}

/** A new account of Ethereum. Its wallet is on this chain. */
export function ethereumAccount(chainId = '0x1'): EthereumAccount {
  const { secretKey, publicKey } = secp256k1.keygen();
  const point = secp256k1.Point.fromBytes(publicKey).toBytes(false);
  const address = `0x${Buffer.from(keccak_256(point.subarray(1)).subarray(12)).toString('hex')}`;
  const signBytes = (bytes: Buffer): `0x${string}` => {
    const prefix = Buffer.from(`Ethereum Signed Message:\n${bytes.length}`);
    const hash = keccak_256(Buffer.concat([Buffer.of(0x19), prefix, bytes]));
    const [recovery = 0, ...rest] = secp256k1.sign(hash, secretKey, { prehash: false, format: 'recovered' });
    return `0x${Buffer.from([...rest, recovery + 27]).toString('hex')}`;
  };
  const answers: Readonly<Record<string, (parameters: unknown) => unknown>> = {
    eth_requestAccounts: () => [address],
    eth_chainId: () => chainId,
    // The client library sends the message in hexadecimal.
    personal_sign: (parameters) =>
      signBytes(Buffer.from(String(parameters).slice(2).split(',')[0] ?? '', 'hex')),
  };
  const request = ({ method, params }: { method: string; params?: unknown }) =>
    Promise.resolve(answers[method]?.(params));
  return {
    address,
    wallet: { address, request, on: () => undefined, removeListener: () => undefined },
    sign: (message) => signBytes(Buffer.from(message)),
  };
}

interface SolanaAccount {
  readonly address: string;
  /** As wallets that sign any message. */
  readonly wallet: SolanaWallet;
  sign(message: string): Uint8Array;
  signBytes(bytes: Uint8Array): Uint8Array;
}

/** A new account of Solana. */
export function solanaAccount(): SolanaAccount {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const address = base58.encode(publicKey.export({ format: 'der', type: 'spki' }).subarray(-32));
  const signBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(sign(null, bytes, privateKey));
  return {
    address,
    wallet: {
      publicKey: { toBase58: () => address },
      signMessage: (bytes: Uint8Array) => Promise.resolve(signBytes(bytes)),
    },
    sign: (message) => signBytes(Buffer.from(message)),
    signBytes,
  };
}

/** The text of a message. An empty value removes a line. */
export function signInMessage(
  title: 'Ethereum' | 'Solana',
  address: string,
  {
    origin = 'example.com',
    statement = '',
    ...given
  }: { readonly origin?: string; readonly statement?: string; readonly [field: string]: string } = {},
): string {
  const fields = {
    URI: 'https://example.com/login',
    Version: '1',
    ...(title === 'Ethereum' && { 'Chain ID': '1', Nonce: '32891757' }),
    'Issued At': new Date().toISOString(),
    ...given,
  };
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    value === '' ? [] : [`${name}: ${value}`],
  );
  const header = [`${origin} wants you to sign in with your ${title} account:`, address, ''];
  const between = statement === '' ? (title === 'Ethereum' ? [''] : []) : [statement, ''];
  return [...header, ...between, ...lines].join('\n');
}
