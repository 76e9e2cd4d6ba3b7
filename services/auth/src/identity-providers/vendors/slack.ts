import { toObject } from '../../outbound/post-form.ts';
import { type Profile, type Provider, type ProviderSession, toProfile } from '../provider.ts';

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
  // Sign-in with Slack requires a confirmed address.
  readProfile: (session) => readUserInfo(session, () => true),
};

/** @see https://docs.slack.dev/authentication/sign-in-with-slack/ */
export const slackOidc: Provider = {
  label: 'Slack',
  endpoints: {
    authorization: 'https://slack.com/openid/connect/authorize',
    token: 'https://slack.com/api/openid.connect.token',
  },
  scopes: ['profile', 'email', 'openid'],
  readProfile: (session) => readUserInfo(session, (user) => user.email_verified === true),
};

async function readUserInfo(
  { get }: ProviderSession,
  isVerified: (user: Readonly<Record<string, unknown>>) => boolean,
): Promise<Profile> {
  const user = toObject(await get('https://slack.com/api/openid.connect.userInfo'));
  const teamId = user['https://slack.com/team_id'];
  return toProfile({
    issuer: 'https://slack.com',
    id: user['https://slack.com/user_id'],
    name: user.name,
    picture: user.picture,
    email: user.email,
    isVerified: isVerified(user),
    customClaims: typeof teamId === 'string' ? { 'https://slack.com/team_id': teamId } : {},
  });
}
