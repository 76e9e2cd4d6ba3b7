import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile } from '../provider.ts';

const api = 'https://api.fly.io';

/** @see https://fly.io/docs/reference/extensions_api/ */
export const fly: Provider = {
  label: 'Fly.io',
  endpoints: { authorization: `${api}/oauth/authorize`, token: `${api}/oauth/token` },
  scopes: ['read'],
  readProfile: async ({ get }) => {
    const info = toObject(await get(`${api}/oauth/token/info`));
    const organizations = Array.isArray(info.organizations)
      ? info.organizations.slice(0, maxOrganizations)
      : [];
    return toProfile({
      issuer: api,
      id: info.user_id,
      name: info.user_name,
      email: info.email,
      isVerified: true,
      customClaims: organizations.length === 0 ? {} : { organizations },
    });
  },
};

/** Claims are part of access tokens, whose size is limited. */
const maxOrganizations = 10;
