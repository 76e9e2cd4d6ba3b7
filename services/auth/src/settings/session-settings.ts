import { bool, int, list } from '@tollgate/kit/settings';
import { seconds } from './builders.ts';
import { svc } from './variable-names.ts';

const group = 'Sessions and refresh tokens';

/** How long sessions live, and what a refresh token used twice means. */
export const sessionSettings = {
  refreshTokenRotationEnabled: bool({
    ...svc('SECURITY_REFRESH_TOKEN_ROTATION_ENABLED'),
    group,
    default: true,
    doc: 'A refresh token is good for one refresh; a second use ends the session.',
  }),
  refreshTokenReuseIntervalMs: seconds({
    ...svc('SECURITY_REFRESH_TOKEN_REUSE_INTERVAL'),
    group,
    default: '10s',
    doc: 'Time in which the previous refresh token may be exchanged again, for the same successor; 0 for never.',
  }),
  refreshTokenAlgorithmVersion: int({
    ...svc('SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION'),
    group,
    default: 1,
    min: 0,
    max: 2,
    doc: 'Form of the refresh tokens of new sessions: 1 (or 0) a random text, kept in a row each; 2 signed with a key of the session, of which a counter is kept. Both forms are always taken.',
  }),
  refreshTokenUpgradePercentage: int({
    ...svc('SECURITY_REFRESH_TOKEN_UPGRADE_PERCENTAGE'),
    group,
    default: 100,
    min: 0,
    max: 100,
    doc: 'With version 2: how many of the sessions of version 1 change over at their next refresh.',
  }),
  refreshTokenAllowReuse: bool({
    ...svc('SECURITY_REFRESH_TOKEN_ALLOW_REUSE'),
    group,
    default: false,
    doc: 'The parent of the token that is good now may be exchanged at any age, for that token.',
  }),
  sessionTimeboxMs: seconds({
    ...svc('SESSIONS_TIMEBOX'),
    group,
    default: '0s',
    doc: 'Longest life of a session; 0 for no end.',
  }),
  sessionInactivityTimeoutMs: seconds({
    ...svc('SESSIONS_INACTIVITY_TIMEOUT'),
    group,
    default: '0s',
    doc: 'Longest time between two refreshes; 0 for any.',
  }),
  sessionAllowLowAalMs: seconds({
    ...svc('SESSIONS_ALLOW_LOW_AAL'),
    group,
    default: '0s',
    doc: 'How long the session of a user with MFA may be refreshed without it; 0 for ever.',
  }),
  sessionSinglePerUser: bool({
    ...svc('SESSIONS_SINGLE_PER_USER'),
    group,
    default: false,
    doc: 'The newest session of a user only is refreshed.',
  }),
  sessionTags: list({
    ...svc('SESSIONS_TAGS'),
    group,
    default: [],
    doc: 'With SVC_SESSIONS_SINGLE_PER_USER: the newest of each of these, which the header `X-Svc-Session-Tag` of a sign-in names; the first when it does not.',
  }),
  statefulBearer: bool({
    ...svc('SECURITY_STATEFUL_BEARER'),
    group,
    default: true,
    doc: 'Refuse access tokens of sessions that have ended; otherwise they are good until they expire.',
  }),
};
