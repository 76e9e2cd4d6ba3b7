import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile } from '../provider.ts';

const scope = 'https://auth.snapchat.com/oauth2/api/user.';

/** @see https://docs.snap.com/snap-kit/login-kit/Tutorials/web */
export const snapchat: Provider = {
  endpoints: {
    authorization: 'https://accounts.snapchat.com/accounts/oauth2/auth',
    token: 'https://accounts.snapchat.com/accounts/oauth2/token',
  },
  scopes: [`${scope}external_id`, `${scope}display_name`, `${scope}bitmoji.avatar`],
  pkce: true,
  readProfile: async ({ get }) => {
    const query = '{me{externalId displayName bitmoji{avatar id} email}}';
    const response = toObject(await get('https://kit.snapchat.com/v1/me', { query: { query } }));
    const user = toObject(toObject(response.data).me);
    return toProfile({
      issuer: 'https://accounts.snapchat.com',
      id: user.externalId,
      name: user.displayName,
      picture: toObject(user.bitmoji).avatar,
      email: user.email,
      isVerified: true,
    });
  },
};
