import { type Provider, rebase, toProfile } from '../provider.ts';

const issuer = 'https://www.linkedin.com/oauth';

/** @see https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2 */
export const linkedinOidc: Provider = {
  label: 'LinkedIn',
  endpoints: {
    authorization: 'https://www.linkedin.com/oauth/v2/authorization',
    token: 'https://www.linkedin.com/oauth/v2/accessToken',
  },
  scopes: ['openid', 'email', 'profile'],
  idToken: {
    keys: (baseUrl) => rebase(`${issuer}/openid/jwks`, baseUrl),
    issuers: (_claims, baseUrl) => [rebase(issuer, baseUrl)],
  },
  readProfile: ({ claims }) =>
    toProfile({
      issuer,
      id: claims.sub,
      name: claims.name,
      picture: claims.picture,
      email: claims.email,
      isVerified: String(claims.email_verified) === 'true',
    }),
};
