import { isIPv6 } from 'node:net';
import { bool, duration, oneOf, port, type SettingsCheck, text } from '@tollgate/kit/settings';
import { hostList, svc } from './builders.ts';

const group = 'External authorization';

export const extAuthzSettings = {
  extAuthzEnabled: bool({
    ...svc('EXT_AUTHZ_ENABLED'),
    group,
    default: true,
    doc: 'Serve checks of Envoy (`ext_authz`) over gRPC and HTTP.',
  }),
  extAuthzHost: text({
    ...svc('EXT_AUTHZ_HOST'),
    group,
    default: '',
    doc: 'Address to listen on. Empty, and in development mode: that of the API. Must not be reachable from outside of the cluster: any client can use it to test tokens.',
  }),
  extAuthzGrpcPort: port({
    ...svc('EXT_AUTHZ_GRPC_PORT'),
    group,
    default: 9001,
    doc: 'TCP port of the gRPC server (`grpc_service`). 0 selects a free port.',
  }),
  extAuthzHttpPort: port({
    ...svc('EXT_AUTHZ_HTTP_PORT'),
    group,
    default: 9003,
    doc: 'TCP port of the HTTP server (`http_service`). 0 selects a free port.',
  }),
  extAuthzAdminPort: port({
    ...svc('EXT_AUTHZ_ADMIN_PORT'),
    group,
    default: 0,
    doc: 'TCP port on 127.0.0.1 of a page that explains checks, `/explain`. Its clients need no token: they are in the pod, or forward a port of it. 0: no page.',
  }),
  extAuthzHttpForwarded: bool({
    ...svc('EXT_AUTHZ_HTTP_FORWARDED'),
    group,
    default: false,
    doc: 'Take method and path of checks over HTTP from `X-Forwarded-Method` and `X-Forwarded-Uri`, which Caddy, Traefik and nginx send. Must be `false` behind Envoy, which sends them in the request line: its clients could set these headers.',
  }),
  extAuthzTlsCert: text({
    ...svc('EXT_AUTHZ_TLS_CERT'),
    group,
    default: '',
    doc: 'PEM file with the certificate chain of both servers. Reloaded when it changes. Empty: no TLS.',
  }),
  extAuthzTlsKey: text({
    ...svc('EXT_AUTHZ_TLS_KEY'),
    group,
    default: '',
    doc: 'PEM file with the private key. Reloaded when it changes.',
  }),
  extAuthzTlsCa: text({
    ...svc('EXT_AUTHZ_TLS_CA'),
    group,
    default: '',
    doc: 'PEM file with the CAs of client certificates. If set, clients must present a certificate.',
  }),
  extAuthzTlsClientSan: text({
    ...svc('EXT_AUTHZ_TLS_CLIENT_SAN'),
    group,
    default: '',
    doc: 'Required DNS name of client certificates. Requires SVC_EXT_AUTHZ_TLS_CA.',
  }),
  extAuthzRoutesFile: text({
    ...svc('EXT_AUTHZ_ROUTES_FILE'),
    group,
    default: '',
    doc: 'YAML file with route rules. Reloaded when it changes. Empty: every path requires a signed-in user.',
  }),
  extAuthzDefaultAccess: text({
    ...svc('EXT_AUTHZ_DEFAULT_ACCESS'),
    group,
    default: '',
    matches: { pattern: /^(?:|authenticated|public|denied)$/, form: 'authenticated, public or denied' },
    doc: 'Access to hosts and routes without an access policy, where no route of the routes file matches: `authenticated`, `public` or `denied`. It replaces `default` of the routes file, which must not contradict it. Empty: `default` of the routes file, else `authenticated`.',
  }),
  extAuthzIssuerPrivateHosts: hostList({
    ...svc('EXT_AUTHZ_ISSUER_PRIVATE_HOSTS'),
    group,
    default: [],
    doc: 'Hosts of `issuers` in the routes file that may have a private address, and may be reached without TLS. Other ones must have public addresses and https.',
  }),
  extAuthzServiceAccountFolder: text({
    ...svc('EXT_AUTHZ_SERVICE_ACCOUNT_FOLDER'),
    group,
    default: '/var/run/secrets/kubernetes.io/serviceaccount',
    doc: 'Folder with `token` and `ca.crt` of the ServiceAccount, with which the keys of an issuer with `kubernetes: true` are read.',
  }),
  kubernetesServiceHost: text({
    env: 'KUBERNETES_SERVICE_HOST',
    group,
    default: '',
    doc: 'Set by Kubernetes in every pod: address of the API server, for an issuer with `kubernetes: true`.',
  }),
  kubernetesServicePort: port({
    env: 'KUBERNETES_SERVICE_PORT',
    group,
    default: 443,
    doc: 'Set by Kubernetes in every pod: port of the API server.',
  }),
  extAuthzDefaultPlan: text({
    ...svc('EXT_AUTHZ_DEFAULT_PLAN'),
    group,
    default: 'free',
    doc: 'Plan of users without a plan in `app_metadata`.',
  }),
  extAuthzMaxStalenessMs: duration({
    ...svc('EXT_AUTHZ_MAX_STALENESS'),
    group,
    default: '10s',
    min: '1s',
    doc: 'Maximum time until a ban, a new role or the end of a session takes effect if its notification is lost.',
  }),
  extAuthzSessionCheck: bool({
    ...svc('EXT_AUTHZ_SESSION_CHECK'),
    group,
    default: true,
    doc: 'Check the state of user and session. `false`: access tokens are trusted until they expire.',
  }),
  extAuthzCookieDomain: text({
    ...svc('EXT_AUTHZ_COOKIE_DOMAIN'),
    group,
    default: '',
    matches: {
      pattern: /^$|^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+$/,
      form: 'a domain in lower case such as example.com, without a dot before it',
    },
    doc: 'Hosts of this domain share the cookie of a browser that has signed in at one of them. Each of these hosts can read and set it, also those without a gateway. Empty: each host has a cookie of its own.',
  }),
  extAuthzRateLimitAddress: text({
    ...svc('EXT_AUTHZ_RATE_LIMIT_ADDRESS'),
    group,
    default: '',
    matches: {
      pattern:
        /^$|^(?:\[[\d:a-fA-F.]+\]|[\w.-]+):(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])$/,
      form: 'host:port or [IPv6 address]:port, without http:// and path, the port from 1 to 65535',
    },
    doc: 'gRPC address of the rate limit service, `host:port`. Allowed requests of routes with `limit` are then limited by ext_authz itself. Empty: no limits, and a routes file with `limit` is rejected.',
  }),
  extAuthzRateLimitDomain: text({
    ...svc('EXT_AUTHZ_RATE_LIMIT_DOMAIN'),
    group,
    default: 'ext_authz',
    matches: { pattern: /./, form: 'text that is not empty' },
    doc: 'Domain of the limits, unless the routes file has `limit_domain`.',
  }),
  extAuthzRateLimitTimeoutMs: duration({
    ...svc('EXT_AUTHZ_RATE_LIMIT_TIMEOUT'),
    group,
    default: '100ms',
    min: '1ms',
    max: '10s',
    doc: 'Timeout of a call to the rate limit service. At most four fifths of what remains of the timeout of the check.',
  }),
  extAuthzRateLimitOnFailure: oneOf(['allow', 'deny'], {
    ...svc('EXT_AUTHZ_RATE_LIMIT_ON_FAILURE'),
    group,
    default: 'allow',
    doc: "When the rate limit service fails or is too slow: `allow` requests without a limit, as Envoy's `ratelimit` filter does, or `deny` them with 503.",
  }),
  extAuthzRateLimitTls: bool({
    ...svc('EXT_AUTHZ_RATE_LIMIT_TLS'),
    group,
    default: false,
    doc: 'Connect to the rate limit service with TLS.',
  }),
  extAuthzRateLimitTlsCa: text({
    ...svc('EXT_AUTHZ_RATE_LIMIT_TLS_CA'),
    group,
    default: '',
    doc: 'PEM file with the CAs of the rate limit service. Empty: those of the system. This and the next two are reloaded when they change.',
  }),
  extAuthzRateLimitTlsCert: text({
    ...svc('EXT_AUTHZ_RATE_LIMIT_TLS_CERT'),
    group,
    default: '',
    doc: 'PEM file with the client certificate for the rate limit service.',
  }),
  extAuthzRateLimitTlsKey: text({
    ...svc('EXT_AUTHZ_RATE_LIMIT_TLS_KEY'),
    group,
    default: '',
    doc: 'PEM file with its private key.',
  }),
};

type Check = SettingsCheck<typeof extAuthzSettings>;

const pair: Check = (s, { problem }) =>
  (s.extAuthzTlsCert === '') === (s.extAuthzTlsKey === '')
    ? undefined
    : problem(
        s.extAuthzTlsCert === '' ? 'extAuthzTlsCert' : 'extAuthzTlsKey',
        'a PEM file: certificate and key must be set together',
      );

const clientTlsNeedsServerTls: Check = (s, { problem, variableName }) =>
  s.extAuthzTlsCa !== '' && s.extAuthzTlsCert === ''
    ? problem('extAuthzTlsCert', `a PEM file, because ${variableName('extAuthzTlsCa')} is set`)
    : undefined;

const sanNeedsAuthority: Check = (s, { problem, variableName }) =>
  s.extAuthzTlsClientSan !== '' && s.extAuthzTlsCa === ''
    ? problem('extAuthzTlsCa', `a PEM file, because ${variableName('extAuthzTlsClientSan')} is set`)
    : undefined;

const adminPageNeedsChecks: Check = (s, { problem, variableName }) =>
  s.extAuthzAdminPort !== 0 && !s.extAuthzEnabled
    ? problem('extAuthzEnabled', `true, because ${variableName('extAuthzAdminPort')} is set`)
    : undefined;

const rateLimitPair: Check = (s, { problem }) =>
  (s.extAuthzRateLimitTlsCert === '') === (s.extAuthzRateLimitTlsKey === '')
    ? undefined
    : problem(
        s.extAuthzRateLimitTlsCert === '' ? 'extAuthzRateLimitTlsCert' : 'extAuthzRateLimitTlsKey',
        'a PEM file: certificate and key must be set together',
      );

const rateLimitFilesNeedTls: Check = (s, { problem, variableName }) => {
  const set = (['extAuthzRateLimitTlsCa', 'extAuthzRateLimitTlsCert'] as const).find(
    (name) => s[name] !== '',
  );
  return set !== undefined && !s.extAuthzRateLimitTls
    ? problem('extAuthzRateLimitTls', `true, because ${variableName(set)} is set`)
    : undefined;
};

const rateLimitNeedsAddress: Check = (s, { problem, variableName }) => {
  if (s.extAuthzRateLimitAddress !== '') return undefined;
  const set = (
    [
      ...(['extAuthzRateLimitTls', 'extAuthzRateLimitOnFailure'] as const),
      ...(['extAuthzRateLimitDomain', 'extAuthzRateLimitTimeoutMs'] as const),
    ] as const
  ).find((name) => s[name] !== extAuthzSettings[name].fallback?.value);
  return set && problem('extAuthzRateLimitAddress', `host:port, because ${variableName(set)} is set`);
};

const rateLimitAddressIsValid: Check = (s, { problem }) => {
  const [, ip] = /^\[(.*)\]/.exec(s.extAuthzRateLimitAddress) ?? [];
  return ip === undefined || isIPv6(ip)
    ? undefined
    : problem('extAuthzRateLimitAddress', 'a valid IPv6 address between the brackets');
};

export const extAuthzChecks: readonly Check[] = [
  ...[pair, clientTlsNeedsServerTls, sanNeedsAuthority, adminPageNeedsChecks],
  ...[rateLimitPair, rateLimitFilesNeedTls, rateLimitNeedsAddress, rateLimitAddressIsValid],
];
