import { toObject, toObjects } from '../../outbound/post-form.ts';
import { type Provider, type ProviderEmail, toProfile, toText, withoutSlash } from '../provider.ts';

/**
 * github.com, or GitHub Enterprise at `EXTERNAL_GITHUB_URL`.
 *
 * @see https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
 */
export const github: Provider = {
  label: 'GitHub',
  endpoints: {
    authorization: 'https://github.com/login/oauth/authorize',
    token: 'https://github.com/login/oauth/access_token',
  },
  scopes: ['user:email'],
  pkce: true,
  readProfile: async ({ get, baseUrl }) => {
    const api = baseUrl === '' ? 'https://api.github.com' : `${withoutSlash(baseUrl)}/api/v3`;
    const user = toObject(await get(`${api}/user`));
    const emails = toObjects(await get(`${api}/user/emails`)).flatMap(toEmail);
    return toProfile({
      issuer: api,
      id: user.id,
      name: user.name,
      userName: user.login,
      picture: user.avatar_url,
      emails,
    });
  },
};

function toEmail({ email, verified, primary }: Readonly<Record<string, unknown>>): ProviderEmail[] {
  const address = toText(email);
  return address === '' ? [] : [{ email: address, verified: verified === true, primary: primary === true }];
}
