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

/** The authorities of one management server, as its Secret has them. */
export interface Authorities {
  /** Signs certificates. */
  readonly signer: KeyPair;
  /** Trusted already, and signs once all limiters have it. */
  readonly next: KeyPair | undefined;
  /** PEM of all authorities to trust: the signer, the next one, and former ones until they expire. */
  readonly bundle: string;
}

/** What is stored; texts may be anything. */
export interface StoredAuthorities {
  readonly signer: KeyPair | undefined;
  readonly next: KeyPair | undefined;
  readonly bundle: string;
}

const dayMs = 86_400_000;

/** How long an authority is valid. */
export const authorityValidMs = 3 * 365 * dayMs;

/** How long before its end there is another one: longer than the certificates that it has signed are valid. */
export const authorityRenewMs = 365 * dayMs;

/**
 * How long an authority is trusted before it signs. The kubelet updates mounted Secrets within two minutes; a limiter that
 * was stopped has the new bundle when it starts.
 */
export const overlapMs = dayMs;

/**
 * Brings authorities up to date: the same object when there is nothing to do. A new authority is added to the bundle
 * first, signs a day later, and the former one is trusted until it expires.
 */
export async function advanceAuthorities(
  stored: StoredAuthorities,
  { commonName, nowMs }: { readonly commonName: string; readonly nowMs: number },
): Promise<Authorities> {
  const issue = () => issueAuthority(commonName, { nowMs, validMs: authorityValidMs });
  const signer = usable(stored.signer, nowMs);
  const next = usable(stored.next, nowMs);
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

/** Undefined for a pair that does not fit together, or has expired. */
function usable(pair: KeyPair | undefined, nowMs: number): UsablePair | undefined {
  const certificate = pair && parseCertificate(pair.cert);
  if (pair === undefined || certificate === undefined || !fits(certificate, pair.key)) return undefined;
  const validToMs = Date.parse(certificate.validTo);
  if (!certificate.ca || validToMs <= nowMs) return undefined;
  return { pair, validFromMs: Date.parse(certificate.validFrom), validToMs };
}

/** Whether a private key is that of a certificate. */
function fits(certificate: X509Certificate, key: string): boolean {
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

/** How long certificates of the server and of limiters are valid. */
export const leafValidMs = 90 * dayMs;

/** How long before its end a certificate is renewed: before the alert on its expiry fires. */
export const leafRenewMs = 30 * dayMs;

/** What a certificate has to be. */
export type WantedLeaf = Omit<LeafRequest, 'validMs'>;

/** The stored certificate when it is still what is wanted, or a new one. */
export async function renewLeaf(
  stored: KeyPair | undefined,
  wanted: WantedLeaf,
  { signer, nowMs }: { readonly signer: KeyPair; readonly nowMs: number },
): Promise<KeyPair> {
  if (stored !== undefined && isGood(stored, wanted, { signer, nowMs })) return stored;
  return await issueLeaf(signer, { ...wanted, validMs: leafValidMs }, nowMs);
}

function isGood(
  { cert, key }: KeyPair,
  { dnsNames = [], uri }: WantedLeaf,
  { signer, nowMs }: { readonly signer: KeyPair; readonly nowMs: number },
): boolean {
  const certificate = parseCertificate(cert);
  const issuer = parseCertificate(signer.cert);
  if (certificate === undefined || issuer === undefined || !fits(certificate, key)) return false;
  const names = [...dnsNames.map((name) => `DNS:${name}`), ...(uri === undefined ? [] : [`URI:${uri}`])];
  return (
    certificate.verify(issuer.publicKey) &&
    Date.parse(certificate.validTo) - nowMs >= leafRenewMs &&
    Date.parse(certificate.validFrom) <= nowMs &&
    certificate.subjectAltName === names.join(', ')
  );
}
