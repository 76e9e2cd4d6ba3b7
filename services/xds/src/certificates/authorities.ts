import { createPrivateKey, type X509Certificate } from 'node:crypto';
import {
  backdateMs,
  issueAuthority,
  issueLeaf,
  type KeyPair,
  type LeafRequest,
  parseBundle,
  parseCertificate,
} from './issue.ts';

/** The certificate authorities of a management server, as stored in its Secret. */
export interface Authorities {
  /** Signs certificates. */
  readonly signer: KeyPair;
  /** Already trusted; signs once all limiters have it. */
  readonly next: KeyPair | undefined;
  /** PEM of all trusted authorities: the signer, the next one, and former ones until they expire. */
  readonly bundle: string;
}

/** Stored content, which may be invalid. */
export interface StoredAuthorities {
  readonly signer: KeyPair | undefined;
  readonly next: KeyPair | undefined;
  readonly bundle: string;
}

const dayMs = 86_400_000;

export const authorityValidMs = 3 * 365 * dayMs;

/** The successor is issued this long before the end: longer than the validity of signed certificates. */
export const authorityRenewMs = 365 * dayMs;

/**
 * How long an authority is trusted before it signs. The kubelet updates mounted Secrets within two minutes, and a limiter
 * that was stopped mounts the new bundle when it starts.
 */
export const overlapMs = dayMs;

/**
 * Issues and promotes authorities as needed. A new authority is added to the bundle first and signs a day later; the
 * former one is trusted until it expires.
 */
export async function renewAuthorities(
  stored: StoredAuthorities,
  { commonName, nowMs }: { readonly commonName: string; readonly nowMs: number },
): Promise<Authorities> {
  const issue = () => issueAuthority(commonName, { nowMs, validMs: authorityValidMs });
  const signer = toUsable(stored.signer, nowMs);
  const next = toUsable(stored.next, nowMs);
  if (signer === undefined) {
    const [pair, successor] = next === undefined ? [await issue(), undefined] : [next.pair, undefined];
    return withBundle(stored.bundle, { signer: pair, next: successor }, nowMs);
  }
  if (next !== undefined && nowMs >= next.validFromMs + backdateMs + overlapMs)
    return withBundle(stored.bundle, { signer: next.pair, next: undefined }, nowMs);
  const isDue = next === undefined && signer.validToMs - nowMs < authorityRenewMs;
  const successor = isDue ? await issue() : next?.pair;
  return withBundle(stored.bundle, { signer: signer.pair, next: successor }, nowMs);
}

interface UsablePair {
  readonly pair: KeyPair;
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** Undefined for a pair that is invalid or has expired. */
function toUsable(pair: KeyPair | undefined, nowMs: number): UsablePair | undefined {
  const certificate = pair && parseCertificate(pair.cert);
  if (pair === undefined || certificate === undefined || !matchesKey(certificate, pair.key)) return undefined;
  const validToMs = Date.parse(certificate.validTo);
  if (!certificate.ca || validToMs <= nowMs) return undefined;
  return { pair, validFromMs: Date.parse(certificate.validFrom), validToMs };
}

function matchesKey(certificate: X509Certificate, key: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function withBundle(
  stored: string,
  { signer, next }: Pick<Authorities, 'signer' | 'next'>,
  nowMs: number,
): Authorities {
  const present = [signer, next].flatMap((pair) => (pair === undefined ? [] : parseBundle(pair.cert)));
  const known = new Set(present.map(({ fingerprint256 }) => fingerprint256));
  const former = parseBundle(stored).filter(
    ({ fingerprint256, ca, validTo }) => ca && !known.has(fingerprint256) && Date.parse(validTo) > nowMs,
  );
  return { signer, next, bundle: [...present, ...former].map(String).join('') };
}

export const leafValidMs = 90 * dayMs;

/** Renewal before the end: before the alert on its expiry fires. */
export const leafRenewMs = 30 * dayMs;

/** The required content of a certificate. */
export type WantedLeaf = Omit<LeafRequest, 'validMs'>;

/** Returns the stored certificate if it is still valid, or a new one. */
export async function renewLeaf(
  stored: KeyPair | undefined,
  wanted: WantedLeaf,
  { signer, nowMs }: { readonly signer: KeyPair; readonly nowMs: number },
): Promise<KeyPair> {
  if (stored !== undefined && isValid(stored, wanted, { signer, nowMs })) return stored;
  return await issueLeaf(signer, { ...wanted, validMs: leafValidMs }, nowMs);
}

function isValid(
  { cert, key }: KeyPair,
  { dnsNames = [], uri }: WantedLeaf,
  { signer, nowMs }: { readonly signer: KeyPair; readonly nowMs: number },
): boolean {
  const certificate = parseCertificate(cert);
  const issuer = parseCertificate(signer.cert);
  if (certificate === undefined || issuer === undefined || !matchesKey(certificate, key)) return false;
  const names = [...dnsNames.map((name) => `DNS:${name}`), ...(uri === undefined ? [] : [`URI:${uri}`])];
  return (
    certificate.verify(issuer.publicKey) &&
    Date.parse(certificate.validTo) - nowMs >= leafRenewMs &&
    Date.parse(certificate.validFrom) <= nowMs &&
    certificate.subjectAltName === names.join(', ')
  );
}
