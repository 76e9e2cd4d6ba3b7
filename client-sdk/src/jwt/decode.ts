import { decodeBase64Url } from '../encoding.ts';

/** A decoded JWT whose signature was not verified. */
export interface DecodedJwt {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  /** The first two parts, as received. */
  readonly signingInput: string;
  readonly signature: Uint8Array<ArrayBuffer>;
}

/** Real tokens with many groups are much shorter. */
const MAXIMUM_LENGTH = 262_144;

/**
 * Decodes a JWT in compact form without verifying its signature; `undefined` if it is malformed or
 * longer than 256 KiB.
 * @see RFC 7519 §7.2 https://www.rfc-editor.org/rfc/rfc7519#section-7.2
 */
export function decodeJwt(jwt: string): DecodedJwt | undefined {
  if (jwt.length > MAXIMUM_LENGTH) return undefined;
  const [headerPart, claimsPart, signaturePart, ...rest] = jwt.split('.');
  if (
    headerPart === undefined ||
    claimsPart === undefined ||
    signaturePart === undefined ||
    rest.length > 0
  ) {
    return undefined;
  }
  const header = decodeJsonObject(headerPart);
  const claims = decodeJsonObject(claimsPart);
  const signature = decodeBase64Url(signaturePart);
  if (header === undefined || claims === undefined || signature === undefined) return undefined;
  return { header, claims, signingInput: `${headerPart}.${claimsPart}`, signature };
}

function decodeJsonObject(part: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = decodeBase64Url(part);
  if (bytes === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
