import { type Provider, toObject, toProfile } from '../provider.ts';

/** @see https://docs.slack.dev/authentication/sign-in-with-slack/ */
export const slackOidc: Provider = {
  endpoints: {
    authorization: 'https://slack.com/openid/connect/authorize',
    token: 'https://slack.com/api/openid.connect.token',
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
      isVerified: user.email_verified === true,
      customClaims: typeof teamId === 'string' ? { 'https://slack.com/team_id': teamId } : {},
    });
  },
};
