import { createPrivateKey, randomBytes, type webcrypto, X509Certificate } from 'node:crypto';

/** A certificate and its private key, in PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface LeafRequest {
  readonly commonName: string;
  readonly use: 'server' | 'client';
  readonly dnsNames?: readonly string[];
  /** Identity of a client. */
  readonly uri?: string;
  readonly validMs: number;
}

/** Tolerated clock skew. */
const backdateMs = 5 * 60_000;

const pkcs8 = { format: 'pem', type: 'pkcs8' } as const;

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Issues a self-signed authority. Authorities of the same name differ in their key identifiers. */
async function issueAuthority(
  commonName: string,
  { nowMs, validMs }: { readonly nowMs: number; readonly validMs: number },
): Promise<KeyPair> {
  const x509 = await loadLibrary();
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ CN: [commonName] }],
    notBefore: new Date(nowMs - backdateMs),
    notAfter: new Date(nowMs + validMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(usages, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: `${certificate.toString('pem')}\n`, key: await exportKey(keys.privateKey) };
}

/** Issues a certificate that expires with the authority at the latest. */
export async function issueLeaf(authority: KeyPair, request: LeafRequest, nowMs: number): Promise<KeyPair> {
  const x509 = await loadLibrary();
  const issuer = new x509.X509Certificate(authority.cert);
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const { commonName, use, dnsNames = [], uri, validMs } = request;
  const names = [
    ...dnsNames.map((value) => ({ type: 'dns', value }) as const),
    ...(uri === undefined ? [] : [{ type: 'url', value: uri } as const]),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    issuer: issuer.subjectName,
    subject: [{ CN: [commonName] }],
    notBefore: new Date(nowMs - backdateMs),
    notAfter: new Date(Math.min(nowMs + validMs, issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        x509.ExtendedKeyUsage[use === 'server' ? 'serverAuth' : 'clientAuth'],
      ]),
      new x509.SubjectAlternativeNameExtension(names),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { cert: `${certificate.toString('pem')}\n`, key: await exportKey(keys.privateKey) };
}

/** Invalid certificates are skipped. */
export function parseBundle(pem: string): readonly X509Certificate[] {
  const texts = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  return texts.flatMap((text) => parseCertificate(text) ?? []);
}

/** Undefined for an invalid certificate. */
export function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** Loaded on demand: with its polyfill it takes 100 ms. */
async function loadLibrary(): Promise<typeof import('@peculiar/x509')> {
  await import('reflect-metadata');
  return await import('@peculiar/x509');
}

/** Positive and unique. @see RFC 5280 §4.1.2.2 */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key));
  const { format, type } = pkcs8;
  return String(createPrivateKey({ key: der, format: 'der', type }).export({ format, type }));
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ format: 'der', type: pkcs8.type });
  return await crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
}

/** The certificate authorities of an xDS server, as stored in its Secret. */
export interface Authorities {
  /** Signs certificates. */
  readonly signer: KeyPair;
  /** Already trusted; signs once all limiters have it. */
  readonly next: KeyPair | undefined;
  /** PEM of all trusted authorities: the signer, the next one, and former ones. */
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

/** The successor is issued this long before the end: longer than leaves are valid. */
export const authorityRenewMs = 365 * dayMs;

/**
 * How long an authority is trusted before it signs. The kubelet updates mounted Secrets within two
 * minutes, and a limiter that was stopped mounts the new bundle when it starts.
 */
export const overlapMs = dayMs;

/**
 * Issues and promotes authorities as needed. A new authority is added to the bundle first and signs
 * a day later; the former one is trusted until it expires.
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
