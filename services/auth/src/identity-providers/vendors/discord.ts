import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile, toText } from '../provider.ts';

const api = 'https://discord.com/api';

/** @see https://discord.com/developers/docs/topics/oauth2 */
export const discord: Provider = {
  endpoints: { authorization: `${api}/oauth2/authorize`, token: `${api}/oauth2/token` },
  scopes: ['email', 'identify'],
  pkce: true,
  readProfile: async ({ get }) => {
    const user = toObject(await get(`${api}/users/@me`));
    const username = toText(user.username);
    const discriminator = toText(user.discriminator);
    const globalName = toText(user.global_name);
    return toProfile({
      issuer: api,
      id: user.id,
      name: discriminator === '' ? username : `${username}#${discriminator}`,
      userName: username,
      picture: avatarUrl(toText(user.id), toText(user.avatar), discriminator),
      email: user.email,
      isVerified: user.verified === true,
      customClaims: globalName === '' ? {} : { global_name: globalName },
    });
  },
};

/** @see https://discord.com/developers/docs/reference#image-formatting */
function avatarUrl(id: string, avatar: string, discriminator: string): string {
  if (avatar === '') return `https://cdn.discordapp.com/embed/avatars/${Number(discriminator) % 5 || 0}.png`;
  const extension = avatar.startsWith('a_') ? 'gif' : 'png';
  return `https://cdn.discordapp.com/avatars/${id}/${avatar}.${extension}`;
}
