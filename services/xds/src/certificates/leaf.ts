import { fits } from './authorities.ts';
import { issueLeaf, type KeyPair, type LeafRequest, parseCertificate } from './issue.ts';

const dayMs = 86_400_000;

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
