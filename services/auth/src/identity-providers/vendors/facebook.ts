import { createHmac } from 'node:crypto';
import { toObject } from '../../outbound/post-form.ts';
import { type Provider, rebase, toProfile } from '../provider.ts';

const graph = 'https://graph.facebook.com';

/** @see https://developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow */
export const facebook: Provider = {
  endpoints: {
    authorization: 'https://www.facebook.com/dialog/oauth',
    token: `${graph}/oauth/access_token`,
  },
  scopes: ['email'],
  signInAgain: { auth_type: 'reauthenticate' },
  // Limited Login of iOS. @see
  // https://developers.facebook.com/docs/facebook-login/limited-login/token/validating
  idTokenGrant: {
    keys: (baseUrl) => rebase('https://limited.facebook.com/.well-known/oauth/openid/jwks/', baseUrl),
    issuers: (_claims, baseUrl) =>
      baseUrl === '' ? ['https://www.facebook.com', 'https://limited.facebook.com'] : [baseUrl],
  },
  readProfile: async ({ get, token, clientSecret }) => {
    // Proves that the caller has the secret of the app: a stolen token is of no use.
    const proof = createHmac('sha256', clientSecret).update(token.token).digest('hex');
    const fields = 'email,first_name,last_name,name,picture';
    const user = toObject(await get(`${graph}/me`, { query: { fields, appsecret_proof: proof } }));
    const { data } = toObject(user.picture);
    return toProfile({
      issuer: graph,
      id: user.id,
      name: user.name,
      nickname: user.name,
      slug: user.name,
      picture: toObject(data).url,
      email: user.email,
      // The API returns no other addresses.
      isVerified: true,
    });
  },
};
