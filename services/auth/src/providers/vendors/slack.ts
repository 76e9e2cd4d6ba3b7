import { type Provider, toObject, toProfile } from '../provider.ts';

/**
 * Slack before OpenID Connect.
 *
 * @see https://api.slack.com/legacy/oauth
 */
export const slack: Provider = {
  endpoints: {
    authorization: 'https://slack.com/oauth/authorize',
    token: 'https://slack.com/api/oauth.access',
  },
  scopes: ['profile', 'email', 'openid'],
  readProfile: async ({ get }) => {
    const user = toObject(await get('https://slack.com/api/openid.connect.userInfo'));
    const teamId = user['https://slack.com/team_id'];
    return toProfile({
      issuer: 'https://slack.com',
      id: user['https://slack.com/user_id'],
      name: user.name,
      picture: user.picture,
      email: user.email,
      // Sign-in with Slack requires a confirmed address.
      isVerified: true,
      customClaims: typeof teamId === 'string' ? { 'https://slack.com/team_id': teamId } : {},
    });
  },
};
