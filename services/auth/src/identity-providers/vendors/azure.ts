import { type Provider, toProfile, toText, withoutSlash } from '../provider.ts';

const defaultUrl = 'https://login.microsoftonline.com/common';
/** Tenants that stand for many. */
const multiTenants = ['common', 'organizations', 'consumers'];
const tenantForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The tenant of personal accounts. */
const personalTenant = '9188040d-6c67-4c5b-b112-36a304b66dad';

/**
 * Microsoft Entra ID. `EXTERNAL_AZURE_URL` contains the tenant.
 *
 * @see https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow
 */
export const azure: Provider = {
  label: 'Microsoft',
  endpoints: (baseUrl) => {
    const base = baseUrl === '' ? defaultUrl : baseUrl;
    return { authorization: `${base}/oauth2/v2.0/authorize`, token: `${base}/oauth2/v2.0/token` };
  },
  scopes: ['openid'],
  pkce: true,
  signInAgain: 'openid',
  idToken: {
    keys: (baseUrl) => `${withoutSlash(baseUrl) || defaultUrl}/discovery/v2.0/keys`,
    issuers: (claims, baseUrl) => acceptedIssuers(withoutSlash(baseUrl) || defaultUrl, toText(claims.tid)),
  },
  readProfile: ({ claims }) =>
    toProfile({
      issuer: toText(claims.iss),
      id: claims.sub,
      name: claims.name,
      userName: claims.preferred_username,
      email: claims.email,
      isVerified: isVerified(claims.xms_edov),
    }),
};

/**
 * Every tenant is an issuer. With a single tenant, tokens of others are rejected.
 *
 * @see https://learn.microsoft.com/en-us/entra/identity-platform/access-tokens#validate-the-issuer
 */
function acceptedIssuers(base: string, tenant: string): readonly string[] {
  const { origin, hostname, pathname } = new URL(base);
  const expected = pathname.split('/').at(-1) ?? '';
  if (!tenantForm.test(tenant)) return [];
  if (tenantForm.test(expected) && tenant !== expected) return [];
  if (expected === 'consumers' && tenant !== personalTenant) return [];
  if (expected === 'organizations' && tenant === personalTenant) return [];
  const path = multiTenants.includes(expected) ? '' : pathname.replace(/\/[^/]*$/, '');
  const issuers = [`${origin}${path}/${tenant}/v2.0`];
  return hostname.endsWith('.ciamlogin.com')
    ? [...issuers, `https://${tenant}.ciamlogin.com/${tenant}/v2.0`]
    : issuers;
}

/**
 * An optional claim: whether the owner of the email's domain was verified. Without it the address
 * is the tenant's word.
 *
 * @see https://learn.microsoft.com/en-us/entra/identity-platform/migrate-off-email-claim-authorization
 */
function isVerified(verified: unknown): boolean {
  return (
    verified === undefined || verified === true || ['1', 'true'].includes(String(verified).toLowerCase())
  );
}
