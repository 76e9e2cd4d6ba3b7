/** Microsoft Entra's placeholder in the issuer of endpoints for several tenants. */
const placeholder = '{tenantid}';

/**
 * Whether an issuer stands for those of several tenants, as in the metadata of
 * `https://login.microsoftonline.com/organizations/v2.0`.
 */
export function isForTenants(issuer: string): boolean {
  return issuer.split('/').includes(placeholder);
}

/** Whether an issuer is the expected one, or that of a tenant if the expected one has several. */
export function isIssuer(issuer: string, expected: string): boolean {
  if (!isForTenants(expected)) return issuer === expected;
  const parts = issuer.split('/');
  const expectedParts = expected.split('/');
  return (
    parts.length === expectedParts.length &&
    parts.every((part, at) => (expectedParts[at] === placeholder ? part !== '' : part === expectedParts[at]))
  );
}

/** The issuer of a tenant's tokens. The tenant is the claim `tid`. */
export function issuerOfTenant(issuer: string, tenant: unknown): string {
  if (!isForTenants(issuer) || typeof tenant !== 'string' || !/^[\w-]+$/.test(tenant)) return issuer;
  return issuer.replaceAll(placeholder, tenant);
}
