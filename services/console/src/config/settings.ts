import { consoleClientId } from '@tollgate/admin-clients/first-party';
import { logLevelSynonyms, logLevels } from '@tollgate/kit/logger';
import {
  defineSettings,
  duration,
  type Environment,
  int,
  list,
  longestTimer,
  oneOf,
  type ParsedSettings,
  parseSettings,
  port,
  type SettingsCheck,
  type SettingValues,
  text,
} from '@tollgate/kit/settings';

const server = 'Server';
const signIn = 'Sign-in';
const services = 'Services';

/** All settings, in the order of docs/settings-console.md. */
export const settingsSpec = defineSettings({
  host: text({
    env: 'CONSOLE_HOST',
    group: server,
    default: '0.0.0.0',
    doc: 'Address of the console.',
  }),
  port: port({
    env: 'CONSOLE_PORT',
    group: server,
    default: 8070,
    doc: 'TCP port of the console; 0 picks a free one.',
  }),
  adminHost: text({
    env: 'CONSOLE_ADMIN_HOST',
    group: server,
    default: '0.0.0.0',
    doc: 'Address of the admin server: health and metrics.',
  }),
  adminPort: port({
    env: 'CONSOLE_ADMIN_PORT',
    group: server,
    default: 8071,
    doc: 'TCP port of the admin server; 0 picks a free one.',
  }),
  externalUrl: text({
    env: 'CONSOLE_EXTERNAL_URL',
    group: server,
    default: 'http://localhost:8070',
    doc: 'URL of the console in browsers, without a path. Its `/callback` is the redirect URI of the OAuth client. With https, cookies are for https only.',
  }),
  shutdownDelayMs: duration({
    env: 'SHUTDOWN_DELAY',
    group: server,
    default: '0s',
    max: longestTimer,
    doc: 'Delay between failing the health check and refusing requests, so that load balancers stop sending traffic first.',
  }),
  drainTimeoutMs: duration({
    env: 'DRAIN_TIMEOUT',
    group: server,
    default: '10s',
    max: longestTimer,
    doc: 'Grace period for requests in flight after SIGTERM.',
  }),
  logLevel: oneOf(logLevels, {
    env: 'LOG_LEVEL',
    group: server,
    default: 'info',
    synonyms: logLevelSynonyms,
    doc: 'Minimum log level.',
  }),
  logFormat: oneOf(['text', 'json'], {
    env: 'LOG_FORMAT',
    group: server,
    default: 'text',
    doc: '`json` writes one object per line with `@message`, `@timestamp` and `level`.',
  }),
  authIssuer: text({
    env: 'CONSOLE_AUTH_ISSUER',
    group: signIn,
    required: true,
    doc: 'Issuer of the auth server: its URL in browsers, `SVC_API_EXTERNAL_URL`.',
  }),
  clientId: text({
    env: 'CONSOLE_CLIENT_ID',
    group: signIn,
    default: consoleClientId,
    doc: 'OAuth client of the console at the auth server. Default: the built-in one, which `SVC_OAUTH_SERVER_CONSOLE_URL` of the auth server enables.',
  }),
  clientSecret: text({
    env: 'CONSOLE_CLIENT_SECRET',
    group: signIn,
    default: '',
    secret: true,
    doc: 'Secret of the OAuth client. Empty: a public client.',
  }),
  scopes: list({
    env: 'CONSOLE_SCOPES',
    group: signIn,
    default: [],
    doc: 'Admin scopes to ask for, such as `users:read`: at most those of the OAuth client. Empty: all that the pages use.',
  }),
  sessionIdleMs: duration({
    env: 'CONSOLE_SESSION_IDLE_TIMEOUT',
    group: signIn,
    default: '1h',
    min: '1m',
    doc: 'A session without requests ends after this time. Open pages that update themselves send requests.',
  }),
  sessionMaxAgeMs: duration({
    env: 'CONSOLE_SESSION_MAX_AGE',
    group: signIn,
    default: '12h',
    min: '1m',
    doc: 'A session ends after this time. The auth server signs the person in again without a question while its own session lasts.',
  }),
  maxSessions: int({
    env: 'CONSOLE_MAX_SESSIONS',
    group: signIn,
    default: 1000,
    min: 1,
    max: 100_000,
    doc: 'Sessions in memory. Beyond it, the one without requests for the longest time ends.',
  }),
  authUrl: text({
    env: 'CONSOLE_AUTH_URL',
    group: services,
    default: '',
    doc: 'URL at which the console reaches the auth server. Default: the issuer.',
  }),
  authReplicaUrls: list({
    env: 'CONSOLE_AUTH_REPLICA_URLS',
    group: services,
    default: [],
    doc: 'URLs of all replicas of the auth server, each of which is asked for its settings and signing keys, such as `http://auth-headless:9999`. A DNS name stands for all its addresses, as that of a headless Service does. Empty: `CONSOLE_AUTH_URL`.',
  }),
  limiterUrls: list({
    env: 'CONSOLE_LIMITER_URLS',
    group: services,
    default: [],
    doc: 'URLs of the counter APIs of rate limit services (`ADMIN_PORT`), such as `http://ratelimit:6071`. A DNS name stands for all its addresses, as that of a headless Service does.',
  }),
  metricsUrls: list({
    env: 'CONSOLE_METRICS_URLS',
    group: services,
    default: [],
    doc: 'URLs of the metrics of all services, such as `http://auth:9100/metrics,http://ratelimit:9090/metrics,http://xds:8090/metrics`, for the overview. A DNS name stands for all its addresses. Empty: the overview has no traffic.',
  }),
  xdsUrl: text({
    env: 'CONSOLE_XDS_URL',
    group: services,
    default: '',
    doc: 'URL of the admin server of the xDS server, such as `http://xds:8090`. Empty: there is none.',
  }),
  xdsToken: text({
    env: 'CONSOLE_XDS_TOKEN',
    group: services,
    default: '',
    secret: true,
    doc: '`XDS_ADMIN_TOKEN` of the xDS server, sent for persons with the scope of the page. Empty: the access token of the person is sent.',
  }),
  prometheusUrl: text({
    env: 'PROMETHEUS_URL',
    group: services,
    default: '',
    doc: 'URL of a Prometheus server, for more than the last hour. Empty: there is none.',
  }),
  requestTimeoutMs: duration({
    env: 'CONSOLE_REQUEST_TIMEOUT',
    group: services,
    default: '5s',
    min: '10ms',
    max: '1m',
    doc: 'Time for a response of a service.',
  }),
});

export type Settings = SettingValues<typeof settingsSpec>;

type Check = SettingsCheck<typeof settingsSpec>;

const urlSettings = ['authIssuer', 'authUrl', 'xdsUrl', 'prometheusUrl', 'externalUrl'] as const;

const urlChecks: readonly Check[] = urlSettings.map(
  (name): Check =>
    (s, { problem }) =>
      s[name] === '' || isHttpUrl(s[name]) ? undefined : problem(name, 'an http or https URL'),
);

const listChecks: readonly Check[] = (['authReplicaUrls', 'limiterUrls', 'metricsUrls'] as const).map(
  (name): Check =>
    (s, { problem }) => {
      const wrong = s[name].find((url) => !isHttpUrl(url));
      return wrong === undefined
        ? undefined
        : { ...problem(name, 'http or https URLs, separated by commas'), value: wrong };
    },
);

const externalUrlIsAnOrigin: Check = (s, { problem }) =>
  !isHttpUrl(s.externalUrl) || isOrigin(s.externalUrl)
    ? undefined
    : problem('externalUrl', 'a URL without path, query or user, such as https://console.example.com');

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  // Errors of requests would show a password.
  return /^https?:$/.test(protocol) && username === '' && password === '';
}

function isOrigin(text: string): boolean {
  const { origin, href } = new URL(text);
  return href === `${origin}/`;
}

/** Reports all problems at once. */
export function readSettings(env: Environment): ParsedSettings<typeof settingsSpec> {
  const read = parseSettings(settingsSpec, env, {
    checks: [...urlChecks, ...listChecks, externalUrlIsAnOrigin],
  });
  if (!read.ok) return read;
  const { authIssuer, authUrl, externalUrl } = read.settings;
  const settings = {
    ...read.settings,
    authUrl: (authUrl || authIssuer).replace(/\/+$/, ''),
    authIssuer: authIssuer.replace(/\/+$/, ''),
    externalUrl: new URL(externalUrl).origin,
  };
  return { ...read, settings };
}
