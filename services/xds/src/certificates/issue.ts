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
export const backdateMs = 5 * 60_000;

const pkcs8 = { format: 'pem', type: 'pkcs8' } as const;

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Issues a self-signed authority. Authorities of the same name differ in their key identifiers. */
export async function issueAuthority(
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
