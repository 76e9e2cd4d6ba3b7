import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile, withoutSlash } from '../provider.ts';

/**
 * `EXTERNAL_KEYCLOAK_URL` is that of the realm.
 *
 * @see https://www.keycloak.org/securing-apps/oidc-layers
 */
export const keycloak: Provider = {
  endpoints: (baseUrl) => {
    const protocol = `${baseUrl}/protocol/openid-connect`;
    return { authorization: `${protocol}/auth`, token: `${protocol}/token` };
  },
  // The user info endpoint requires `openid`.
  scopes: ['openid', 'profile', 'email'],
  pkce: true,
  signInAgain: 'openid',
  idTokenGrant: {
    keys: (baseUrl) => `${withoutSlash(baseUrl)}/protocol/openid-connect/certs`,
    issuers: (_claims, baseUrl) => [withoutSlash(baseUrl)],
  },
  readProfile: async ({ get, baseUrl }) => {
    const user = toObject(await get(`${withoutSlash(baseUrl)}/protocol/openid-connect/userinfo`));
    return toProfile({
      issuer: withoutSlash(baseUrl),
      id: user.sub,
      name: user.name,
      userName: user.preferred_username,
      picture: user.picture,
      email: user.email,
      isVerified: user.email_verified === true,
    });
  },
};
