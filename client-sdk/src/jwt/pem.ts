import { ConfigurationError } from '../errors/configuration-error.ts';
import { decodeBase64 } from './base64url.ts';

/** DER of `INTEGER 0, SEQUENCE { OID rsaEncryption, NULL }`: what PKCS#8 puts before an RSA key. */
const rsaPrefix = [
  0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/** What the `-----BEGIN …-----` line of a PEM text may say, with how to get to a usable form from the others. */
const refusals: Readonly<Record<string, string>> = {
  'ENCRYPTED PRIVATE KEY':
    'the private key is encrypted; decrypt it first (openssl pkcs8 -in key.pem -out plain.pem, or node:crypto createPrivateKey with its passphrase)',
  'EC PRIVATE KEY':
    'the private key is in SEC 1 form; convert it with openssl pkcs8 -topk8 -nocrypt -in key.pem',
  CERTIFICATE: 'a certificate is not a key; extract it with openssl x509 -pubkey -noout -in cert.pem',
};

/** A key read from PEM: its DER bytes and the WebCrypto format they are in. */
export interface PemKey {
  readonly format: 'pkcs8' | 'spki';
  readonly der: Uint8Array<ArrayBuffer>;
}

/** Whether the text looks like PEM at all. */
export function isPem(text: string): boolean {
  return text.includes('-----BEGIN ');
}

/**
 * Reads the first key of a PEM text: PKCS#8 (`PRIVATE KEY`), SPKI (`PUBLIC KEY`) or PKCS#1 (`RSA PRIVATE KEY`, as
 * GitHub and older tools write it, wrapped into PKCS#8 here because WebCrypto reads nothing else).
 *
 * @throws {ConfigurationError} for other forms, saying how to convert them
 * @see RFC 7468 https://www.rfc-editor.org/rfc/rfc7468
 */
export function parsePem(pem: string): PemKey {
  const match = /-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/.exec(pem);
  const label = match?.[1] ?? '';
  const body = match?.[2] ?? '';
  // An encrypted PKCS#1 or SEC 1 key carries header lines, which are not base64.
  if (body.includes('Proc-Type:')) throw new ConfigurationError(`key: ${refusals['ENCRYPTED PRIVATE KEY']}`);
  const der = match === null ? undefined : decodeBase64(body);
  if (der !== undefined) {
    if (label === 'PRIVATE KEY') return { format: 'pkcs8', der };
    if (label === 'PUBLIC KEY') return { format: 'spki', der };
    if (label === 'RSA PRIVATE KEY') return { format: 'pkcs8', der: wrapRsaKey(der) };
  }
  const reason =
    refusals[label] ?? 'expected a PEM text with a PRIVATE KEY (PKCS#8) or PUBLIC KEY (SPKI) block';
  throw new ConfigurationError(`key: ${reason}`);
}

function wrapRsaKey(pkcs1: Uint8Array): Uint8Array<ArrayBuffer> {
  return derElement(0x30, [...rsaPrefix, ...derElement(0x04, [...pkcs1])]);
}

function derElement(tag: number, content: readonly number[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([tag, ...derLength(content.length), ...content]);
}

function derLength(length: number): number[] {
  if (length < 0x80) return [length];
  if (length < 0x100) return [0x81, length];
  return [0x82, length >> 8, length & 0xff];
}
