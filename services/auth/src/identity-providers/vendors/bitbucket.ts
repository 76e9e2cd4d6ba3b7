import { toObject, toObjects } from '../../outbound/post-form.ts';
import { type Provider, toProfile, toText } from '../provider.ts';

const api = 'https://api.bitbucket.org/2.0';

/** @see https://support.atlassian.com/bitbucket-cloud/docs/use-oauth-on-bitbucket-cloud/ */
export const bitbucket: Provider = {
  endpoints: {
    authorization: 'https://bitbucket.org/site/oauth2/authorize',
    token: 'https://bitbucket.org/site/oauth2/access_token',
  },
  scopes: ['account', 'email'],
  clientAuth: 'client_secret_basic',
  readProfile: async ({ get }) => {
    const user = toObject(await get(`${api}/user`));
    const emails = toObjects(toObject(await get(`${api}/user/emails`)).values);
    const { avatar } = toObject(user.links);
    return toProfile({
      issuer: api,
      id: user.uuid,
      name: user.display_name,
      userName: user.username,
      picture: toObject(avatar).href,
      emails: emails
        .map(({ email, is_confirmed: verified, is_primary: primary }) => ({
          email: toText(email),
          verified: verified === true,
          primary: primary === true,
        }))
        .filter(({ email }) => email !== ''),
    });
  },
};
