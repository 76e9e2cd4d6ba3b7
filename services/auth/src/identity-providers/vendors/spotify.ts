import { toObject, toObjects } from '../../outbound/post-form.ts';
import { type Provider, toProfile } from '../provider.ts';

/** @see https://developer.spotify.com/documentation/web-api/tutorials/code-flow */
export const spotify: Provider = {
  endpoints: {
    authorization: 'https://accounts.spotify.com/authorize',
    token: 'https://accounts.spotify.com/api/token',
  },
  scopes: ['user-read-email'],
  clientAuth: 'client_secret_basic',
  pkce: true,
  readProfile: async ({ get }) => {
    const user = toObject(await get('https://api.spotify.com/v1/me'));
    const [largest = {}] = toObjects(user.images).toSorted((a, b) => height(b) - height(a));
    return toProfile({
      issuer: 'https://api.spotify.com',
      id: user.id,
      name: user.display_name,
      picture: largest.url,
      email: user.email,
      // Spotify does not verify addresses.
      isVerified: false,
    });
  },
};

function height(image: Readonly<Record<string, unknown>>): number {
  return typeof image.height === 'number' ? image.height : 0;
}
