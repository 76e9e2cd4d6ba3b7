import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile } from '../provider.ts';

const api = 'https://api.x.com/2';

/** @see https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code */
export const x: Provider = {
  endpoints: { authorization: 'https://x.com/i/oauth2/authorize', token: `${api}/oauth2/token` },
  scopes: ['users.email', 'tweet.read', 'users.read', 'offline.access'],
  clientAuth: 'client_secret_basic',
  pkce: true,
  gotrueUsesPkce: true,
  readProfile: async ({ get }) => {
    const fields = 'id,name,username,profile_image_url,confirmed_email';
    const response = toObject(await get(`${api}/users/me`, { query: { 'user.fields': fields } }));
    const user = toObject(response.data);
    return toProfile({
      issuer: 'https://api.x.com',
      id: user.id,
      name: user.name,
      userName: user.username,
      picture: user.profile_image_url,
      email: user.confirmed_email,
      isVerified: true,
    });
  },
};
