import { toObject } from '../../outbound/post-form.ts';
import { type Provider, toProfile, toText } from '../provider.ts';

const api = 'https://api.workos.com';

/**
 * Single sign-on by WorkOS. Clients give `connection`, `organization` or `workos_provider`.
 *
 * @see https://workos.com/docs/reference/sso
 */
export const workos: Provider = {
  label: 'WorkOS',
  endpoints: { authorization: `${api}/sso/authorize`, token: `${api}/sso/token` },
  scopes: [],
  parameterNames: { workos_provider: 'provider' },
  readProfile: ({ token }) => {
    const user = toObject(token.param('profile'));
    const name = [toText(user.first_name), toText(user.last_name)].filter((part) => part !== '').join(' ');
    return toProfile({
      issuer: api,
      id: user.id,
      name,
      email: user.email,
      // The organization's identity provider vouches for it.
      isVerified: true,
      customClaims: {
        connection_id: toText(user.connection_id),
        organization_id: toText(user.organization_id),
      },
    });
  },
};
