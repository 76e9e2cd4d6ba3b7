import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile } from '../provider.ts';

const api = 'https://api.notion.com/v1';

/** @see https://developers.notion.com/docs/authorization */
export const notion: Provider = {
  endpoints: { authorization: `${api}/oauth/authorize`, token: `${api}/oauth/token` },
  scopes: [],
  clientAuth: 'client_secret_basic',
  authorizationParameters: { owner: 'user' },
  readProfile: async ({ get }) => {
    const bot = toObject(await get(`${api}/users/me`, { headers: { 'notion-version': '2021-08-16' } }));
    const user = toObject(toObject(toObject(bot.bot).owner).user);
    return toProfile({
      issuer: 'https://api.notion.com',
      id: user.id,
      name: user.name,
      userName: user.name,
      picture: user.avatar_url,
      email: toObject(user.person).email,
      // Notion has no accounts with unverified addresses.
      isVerified: true,
    });
  },
};
