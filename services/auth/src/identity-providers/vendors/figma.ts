import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile } from '../provider.ts';

/** @see https://developers.figma.com/docs/rest-api/authentication/ */
export const figma: Provider = {
  endpoints: {
    authorization: 'https://www.figma.com/oauth',
    token: 'https://api.figma.com/v1/oauth/token',
  },
  scopes: ['current_user:read'],
  clientAuth: 'client_secret_basic',
  pkce: true,
  readProfile: async ({ get }) => {
    const user = toObject(await get('https://api.figma.com/v1/me'));
    return toProfile({
      issuer: 'https://www.figma.com',
      id: user.id,
      name: user.handle,
      picture: user.img_url,
      email: user.email,
      // Figma has no accounts with unverified addresses.
      isVerified: true,
    });
  },
};
