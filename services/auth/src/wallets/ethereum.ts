import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import type { Chain } from './chain.ts';

/**
 * Accounts of Ethereum. Signatures are recovered, so accounts that are contracts (ERC-1271) cannot
 * sign in.
 */
export const ethereum: Chain = {
  title: 'Ethereum',
  isStrict: true,
  /** @see EIP-155 https://eips.ethereum.org/EIPS/eip-155 */
  chainId: /^[1-9]\d{0,31}$/,
  parseAddress,
  signatureForm: '65 bytes as 130 hexadecimal digits',
  parseSignature: (text) => {
    const [, digits] = /^(?:0x)?([0-9a-f]{130})$/i.exec(text) ?? [];
    return digits === undefined ? undefined : Buffer.from(digits, 'hex');
  },
  isSigned: ({ text, address, signature }) => recoverAddress(text, signature) === address,
  // GoTrue stored addresses as they were signed.
  otherForms: (address) => [withChecksum(address)],
};

/**
 * An address in lower case. Letters in both cases are a checksum.
 *
 * @see EIP-55 https://eips.ethereum.org/EIPS/eip-55
 */
function parseAddress(text: string): string | undefined {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) return undefined;
  const address = text.toLowerCase();
  const digits = text.slice(2);
  const hasChecksum = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  return hasChecksum && text !== withChecksum(address) ? undefined : address;
}

function withChecksum(address: string): string {
  const digits = address.slice(2);
  const hash = Buffer.from(keccak_256(Buffer.from(digits))).toString('hex');
  return `0x${[...digits].map((digit, at) => (hash.charAt(at) >= '8' ? digit.toUpperCase() : digit)).join('')}`;
}

/** The address whose key has made a `personal_sign` signature; undefined for an invalid one. */
function recoverAddress(text: string, signature: Uint8Array): string | undefined {
  const message = Buffer.from(text);
  // ERC-191 §0x45 https://eips.ethereum.org/EIPS/eip-191
  const prefix = Buffer.from(`Ethereum Signed Message:\n${message.length}`);
  const hash = keccak_256(Buffer.concat([Buffer.of(0x19), prefix, message]));
  const last = signature.at(-1) ?? 0;
  const recoveryBit = last >= 27 ? last - 27 : last;
  if (recoveryBit > 1) return undefined;
  try {
    const parsed = secp256k1.Signature.fromBytes(signature.subarray(0, 64), 'compact');
    // EIP-2 §Specification: of both valid signatures only the lower is accepted.
    if (parsed.hasHighS()) return undefined;
    const key = parsed.addRecoveryBit(recoveryBit).recoverPublicKey(hash).toBytes(false);
    return `0x${Buffer.from(keccak_256(key.subarray(1)))
      .toString('hex')
      .slice(-40)}`;
  } catch {
    // Not numbers of the curve.
    return undefined;
  }
}
