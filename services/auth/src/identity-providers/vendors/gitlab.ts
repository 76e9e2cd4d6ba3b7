import { toObject, toObjects } from '../../outbound/post-form.ts';
import { type Provider, toProfile, toText } from '../provider.ts';

const origin = 'https://gitlab.com';

/** @see https://docs.gitlab.com/api/oauth2/ */
export const gitlab: Provider = {
  label: 'GitLab',
  endpoints: { authorization: `${origin}/oauth/authorize`, token: `${origin}/oauth/token` },
  scopes: ['read_user'],
  pkce: true,
  readProfile: async ({ get, baseUrl }) => {
    const user = toObject(await get(`${origin}/api/v4/user`));
    const others = toObjects(await get(`${origin}/api/v4/user/emails`)).map((other) => toEmail(other, false));
    const emails = [toEmail(user, true), ...others].filter(({ email }) => email !== '');
    return toProfile({
      issuer: baseUrl === '' ? origin : baseUrl,
      id: user.id,
      name: user.name,
      userName: user.username,
      picture: user.avatar_url,
      emails,
    });
  },
};

function toEmail(source: Readonly<Record<string, unknown>>, primary: boolean) {
  return { email: toText(source.email), verified: toText(source.confirmed_at) !== '', primary };
}
