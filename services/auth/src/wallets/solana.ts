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
    if (key === undefined) return false;
    const message = Buffer.from(text);
    // RFC 8032 excludes keys of small order and signatures that were altered.
    return [message, ...offChainMessages(message, key)].some((signed) =>
      ed25519.verify(signature, signed, key, { zip215: false }),
    );
  },
  otherForms: () => [],
};

const signingDomain = Buffer.from('\xffsolana offchain', 'latin1');
const signerCount = 1;
const headerVersion = Buffer.of(0);
/** Restricted ASCII, UTF-8 that a Ledger shows, and longer UTF-8. */
const messageFormats = [0, 1, 2];
/** Ledger's library sends zeros unless the application names itself. */
const applicationDomain = Buffer.alloc(32);

/**
 * The envelopes in which a Ledger signs a message: with the header of the proposal, and with the
 * shorter one of older firmware.
 *
 * @see https://docs.anza.xyz/proposals/off-chain-message-signing
 */
function offChainMessages(message: Buffer, key: Uint8Array): readonly Buffer[] {
  const length = Buffer.alloc(2);
  length.writeUInt16LE(message.length);
  const prefix = Buffer.concat([signingDomain, headerVersion]);
  return messageFormats.flatMap((format) => [
    Buffer.concat([prefix, applicationDomain, Buffer.of(format, signerCount), key, length, message]),
    Buffer.concat([prefix, Buffer.of(format), length, message]),
  ]);
}

/** The public key; undefined for an address that is not valid. */
function decodeAddress(text: string): Uint8Array | undefined {
  if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(text)) return undefined;
  const key = base58.decode(text);
  return key.length === 32 ? key : undefined;
}
