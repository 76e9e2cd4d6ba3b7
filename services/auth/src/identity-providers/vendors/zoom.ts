import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile, toText } from '../provider.ts';

/** @see https://developers.zoom.us/docs/integrations/oauth/ */
export const zoom: Provider = {
  endpoints: { authorization: 'https://zoom.us/oauth/authorize', token: 'https://zoom.us/oauth/token' },
  scopes: [],
  clientAuth: 'client_secret_basic',
  pkce: true,
  readProfile: async ({ get }) => {
    const user = toObject(await get('https://api.zoom.us/v2/users/me'));
    const name = [toText(user.first_name), toText(user.last_name)].filter((part) => part !== '').join(' ');
    return toProfile({
      issuer: 'https://api.zoom.us',
      id: user.id,
      name,
      picture: user.pic_url,
      email: user.email,
      isVerified: user.verified === 1,
    });
  },
};
