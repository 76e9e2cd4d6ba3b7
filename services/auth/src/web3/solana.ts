import { ed25519 } from '@noble/curves/ed25519.js';
import { base58 } from '@scure/base';
import type { Chain } from './chain.ts';

/** Accounts of Solana, whose addresses are public keys. */
export const solana: Chain = {
  title: 'Solana',
  isStrict: false,
  chainId: /^(?:solana:)?(?:mainnet|devnet|testnet|localnet)$/i,
  parseAddress: (text) => (decodeAddress(text) === undefined ? undefined : text),
  signatureForm: '64 bytes in base64',
  parseSignature: (text) =>
    /^[\w+/-]{86}(?:==)?$/.test(text) ? Buffer.from(text, 'base64').subarray(0, 64) : undefined,
  isSigned: ({ text, address, signature }) => {
    const key = decodeAddress(address);
    // By RFC 8032, which excludes keys of small order and signatures that were altered.
    return key !== undefined && ed25519.verify(signature, Buffer.from(text), key, { zip215: false });
  },
  otherForms: () => [],
};

/** The public key; undefined for an address that is not valid. */
function decodeAddress(text: string): Uint8Array | undefined {
  if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(text)) return undefined;
  const key = base58.decode(text);
  return key.length === 32 ? key : undefined;
}
