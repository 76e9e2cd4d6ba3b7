import { toObject, toObjects } from '../../outbound/post-form.ts';
import { type Provider, toProfile } from '../provider.ts';

/** @see https://dev.twitch.tv/docs/authentication/getting-tokens-oauth/ */
export const twitch: Provider = {
  endpoints: {
    authorization: 'https://id.twitch.tv/oauth2/authorize',
    token: 'https://id.twitch.tv/oauth2/token',
  },
  scopes: ['user:read:email'],
  readProfile: async ({ get, clientId }) => {
    const users = toObject(
      await get('https://api.twitch.tv/helix/users', { headers: { 'client-id': clientId } }),
    );
    const [user = {}] = toObjects(users.data);
    return toProfile({
      issuer: 'https://api.twitch.tv',
      id: user.id,
      name: user.login,
      userName: user.login,
      nickname: user.display_name,
      slug: user.display_name,
      picture: user.profile_image_url,
      email: user.email,
      // The API returns no other addresses.
      isVerified: true,
    });
  },
};
