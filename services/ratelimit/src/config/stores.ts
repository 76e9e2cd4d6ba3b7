import {
  bool,
  duration,
  int,
  list,
  longestTimer,
  oneOf,
  type SettingsCheck,
  text,
} from '@tollgate/kit/settings';
import { isSrvName, parseServerAddress } from './memcached-addresses.ts';
import type { counterSettings } from './ratelimit.ts';
import type { Settings } from './settings.ts';

function instanceSettings(infix: '' | 'PERSECOND_', defaultUrl: string) {
  const group = infix === '' ? 'Redis' : 'Redis for limits per second';
  const named = (name: string) => ({
    env: `KVSTORE_${infix}${name}`,
    aliases: [`REDIS_${infix}${name}`],
    group,
  });
  return {
    SocketType: text({
      ...named('SOCKET_TYPE'),
      default: 'unix',
      matches: { pattern: /^(unix|tcp|tcp4|tcp6)$/i, form: 'tcp or unix' },
      doc: 'Type of the address in the URL, when the address is ambiguous.',
    }),
    Url: text({
      ...named('URL'),
      default: defaultUrl,
      doc: 'Single: `host:port`, `redis://user:password@host:port?db=n` (`rediss://` with TLS), or the path of a unix socket. Sentinel: the name of the master, then the sentinels, `mymaster,host:port,host:port`. Cluster: some of its nodes, `host:port,host:port`; the others are discovered.',
    }),
    Type: oneOf(['single', 'sentinel', 'cluster'], {
      ...named('TYPE'),
      default: 'single',
      doc: 'Type of deployment: a single server, one behind sentinels, or a cluster.',
    }),
    Auth: text({ ...named('AUTH'), default: '', secret: true, doc: '`password` or `user:password`.' }),
    AuthFile: text({
      ...named('AUTH_FILE'),
      default: '',
      doc: 'File with `password` or `user:password`. When it changes, new connections use it, and open ones log in again.',
    }),
    AuthUsernameFile: text({
      ...named('AUTH_USERNAME_FILE'),
      default: '',
      doc: 'File with the user name; the other file has the password alone then.',
    }),
    AuthCommand: text({
      ...named('AUTH_COMMAND'),
      default: '',
      hidden: true,
      doc: 'Program that prints `password`, `user:password`, or JSON with `password`, `username`, and `expiresAt` (RFC 3339) or `expiresInSeconds`. Words are separated by blanks, or a list of texts in JSON; there is no shell. It is run at the start and before the credentials expire.',
    }),
    AuthCommandTimeoutMs: duration({
      ...named('AUTH_COMMAND_TIMEOUT'),
      default: '10s',
      min: '1ms',
      max: longestTimer,
      clamp: true,
      doc: 'Timeout of the program, which is killed then.',
    }),
    AuthCommandIntervalMs: duration({
      ...named('AUTH_COMMAND_INTERVAL'),
      default: '5m',
      min: '1s',
      max: longestTimer,
      clamp: true,
      doc: 'Time between two runs of the program. Credentials that say when they expire are renewed after 70 % of their lifetime, if that is sooner.',
    }),
    SentinelAuth: text({
      ...named('SENTINEL_AUTH'),
      default: '',
      secret: true,
      doc: '`password` or `user:password` for the sentinels.',
    }),
    SentinelAuthFile: text({
      ...named('SENTINEL_AUTH_FILE'),
      default: '',
      doc: 'File with `password` or `user:password` for the sentinels, reloaded like that for Redis.',
    }),
    Tls: bool({ ...named('TLS'), default: false, doc: 'Connect with TLS.' }),
    TimeoutMs: duration({
      ...named('TIMEOUT'),
      default: '10s',
      min: '1ms',
      max: longestTimer,
      clamp: true,
      zeroAs: '10s',
      doc: 'Timeout of connecting, of waiting for a connection, and of each exchange with Redis.',
    }),
    PoolSize: int({
      ...named('POOL_SIZE'),
      default: 10,
      min: 1,
      max: 1000,
      clamp: true,
      doc: 'Maximum number of connections. Requests are batched: all that arrive within a tick of the event loop share one connection.',
    }),
    PoolOnEmpty: oneOf(['create', 'error', 'wait'], {
      ...named('POOL_ON_EMPTY_BEHAVIOR'),
      default: 'create',
      doc: 'What to do when all connections are busy: open one more, fail, or wait.',
    }),
    PoolOnEmptyWaitMs: duration({
      ...named('POOL_ON_EMPTY_WAIT_DURATION'),
      default: '1s',
      max: longestTimer,
      clamp: true,
      doc: 'How long `create` and `error` wait for a connection first.',
    }),
    PipelineWindowMs: duration({
      ...named('PIPELINE_WINDOW'),
      default: '0',
      max: longestTimer,
      clamp: true,
      doc: 'How long hits are collected before they are sent as one pipeline; 0 sends them at the end of each tick of the event loop.',
    }),
    ClusterPipelineParallelism: int({
      ...named('CLUSTER_PIPELINE_PARALLELISM'),
      default: 1,
      min: 0,
      doc: 'Accepted, no effect: all nodes of a cluster are called in parallel.',
    }),
    PipelineLimit: int({ ...named('PIPELINE_LIMIT'), default: 0, doc: 'Accepted, no effect (deprecated).' }),
  };
}

type Prefixed<P extends string, T> = { readonly [K in keyof T & string as `${P}${K}`]: T[K] };

function prefixed<const P extends string, T extends object>(prefix: P, settings: T): Prefixed<P, T> {
  const entries = Object.entries(settings).map(([name, setting]) => [`${prefix}${name}`, setting]);
  // Object.fromEntries loses the names, which come from P and T.
  return Object.fromEntries(entries) as Prefixed<P, T>;
}

const group = 'Redis';
const named = (name: string) => ({ env: `KVSTORE_${name}`, aliases: [`REDIS_${name}`], group });

export const redisSettings = {
  ...prefixed('redis', instanceSettings('', '/var/run/nutcracker/ratelimit.sock')),
  redisTlsClientCert: text({
    ...named('TLS_CLIENT_CERT'),
    default: '',
    doc: 'PEM file with a client certificate, for both instances. Like the next two, it is reloaded when it changes, and used for new connections.',
  }),
  redisTlsClientKey: text({ ...named('TLS_CLIENT_KEY'), default: '', doc: 'PEM file with its private key.' }),
  redisTlsCacert: text({
    ...named('TLS_CACERT'),
    default: '',
    doc: 'PEM file with the certificate authorities of Redis; empty for those of Node.js.',
  }),
  redisTlsSkipHostnameVerification: bool({
    ...named('TLS_SKIP_HOSTNAME_VERIFICATION'),
    default: false,
    doc: 'Skip the verification of the host name; the certificate chain is still verified.',
  }),
  redisHealthCheckActiveConnection: bool({
    ...named('HEALTH_CHECK_ACTIVE_CONNECTION'),
    default: false,
    doc: 'Fail the health check, and so the readiness, while there is no connection to Redis. Otherwise health does not depend on the store, and `on_store_failure` answers.',
  }),
  redisStartupInitialIntervalMs: duration({
    ...named('STARTUP_INITIAL_INTERVAL'),
    default: '1s',
    min: '1ms',
    max: longestTimer,
    clamp: true,
    doc: 'Initial backoff between attempts to connect at the start; it doubles, with jitter, up to the next setting. Reconnects after the start use 50 ms to 5 s.',
  }),
  redisStartupMaxIntervalMs: duration({
    ...named('STARTUP_MAX_INTERVAL'),
    default: '30s',
    min: '1ms',
    max: longestTimer,
    clamp: true,
    doc: 'Maximum backoff at the start.',
  }),
  redisStartupMaxElapsedMs: duration({
    ...named('STARTUP_MAX_ELAPSED_TIME'),
    default: '0',
    max: longestTimer,
    clamp: true,
    doc: 'Give up the start after this time without a connection; 0 sets no limit.',
  }),
  redisBreakerFailures: int({
    ...named('BREAKER_FAILURES'),
    default: 0,
    min: 0,
    max: 1_000_000,
    doc: 'Consecutive failed exchanges with a Redis server (a node of a cluster) that open its circuit breaker: requests then fail at once, without waiting for KVSTORE_TIMEOUT. An exchange has the requests of one batch; errors of single keys or commands do not count. 0 disables it.',
  }),
  redisBreakerIntervalMs: duration({
    ...named('BREAKER_INTERVAL'),
    default: '1s',
    min: '1ms',
    max: longestTimer,
    clamp: true,
    doc: 'How long the circuit breaker stays open until one request probes Redis. It doubles with each failed probe, with jitter, up to the next setting.',
  }),
  redisBreakerMaxIntervalMs: duration({
    ...named('BREAKER_MAX_INTERVAL'),
    default: '5s',
    min: '1ms',
    max: longestTimer,
    clamp: true,
    doc: 'Maximum time between two probes.',
  }),
  redisPerSecond: bool({
    ...named('PERSECOND'),
    default: false,
    doc: 'Keep the counters of limits per second in a separate Redis.',
  }),
  ...prefixed(
    'redisPerSecond',
    instanceSettings('PERSECOND_', '/var/run/nutcracker/ratelimitpersecond.sock'),
  ),
};

const memcachedGroup = 'memcached';
const memcachedName = (name: string) => ({
  env: `MCACHE_${name}`,
  aliases: [`MEMCACHE_${name}`],
  group: memcachedGroup,
});

export const memcacheSettings = {
  memcacheHostPort: list({
    ...memcachedName('HOST_PORT'),
    default: [],
    doc: 'The memcached servers, `host:port,host:port`. All limiters need the same servers in the same order, because the position in the list decides which server holds a counter. Exclusive with MCACHE_SRV.',
  }),
  memcacheSrv: text({
    ...memcachedName('SRV'),
    default: '',
    doc: 'SRV record of the servers, `_service._proto.name`, as a fully qualified name.',
  }),
  memcacheSrvRefreshMs: duration({
    ...memcachedName('SRV_REFRESH'),
    default: '0',
    max: longestTimer,
    clamp: true,
    bareSeconds: true,
    doc: 'Interval at which the SRV record is resolved again; 0 disables it. When resolving fails, the current servers are kept.',
  }),
  memcacheMaxIdleConnections: int({
    ...memcachedName('MAX_IDLE_CONNS'),
    default: 2,
    min: 0,
    max: 1000,
    clamp: true,
    doc: 'Connections to each server; 0 means 2. Requests are batched: all that arrive within a tick of the event loop share one connection.',
  }),
  memcacheTimeoutMs: duration({
    env: 'MCACHE_TIMEOUT',
    group: memcachedGroup,
    default: '500ms',
    min: '1ms',
    max: longestTimer,
    clamp: true,
    zeroAs: '500ms',
    doc: 'Timeout of each exchange with a server. Requests that are not counted by then are allowed.',
  }),
  memcacheTls: bool({ ...memcachedName('TLS'), default: false, doc: 'Connect with TLS.' }),
  memcacheTlsClientCert: text({
    ...memcachedName('TLS_CLIENT_CERT'),
    default: '',
    doc: 'PEM file with a client certificate. Like the next two, it is reloaded when it changes, and used for new connections.',
  }),
  memcacheTlsClientKey: text({
    ...memcachedName('TLS_CLIENT_KEY'),
    default: '',
    doc: 'PEM file with its private key.',
  }),
  memcacheTlsCacert: text({
    ...memcachedName('TLS_CACERT'),
    default: '',
    doc: 'PEM file with the certificate authorities of the servers; empty for those of Node.js.',
  }),
  memcacheTlsSkipHostnameVerification: bool({
    ...memcachedName('TLS_SKIP_HOSTNAME_VERIFICATION'),
    default: false,
    doc: 'Skip the verification of the host name; the certificate chain is still verified.',
  }),
};

type Check = SettingsCheck<typeof counterSettings & typeof memcacheSettings>;

const serversAreNamed: Check = (s, { problem, variableName }) =>
  s.backendType === 'memcache' && s.memcacheHostPort.length === 0 && s.memcacheSrv === ''
    ? problem(
        'memcacheHostPort',
        `host:port,host:port, because ${variableName('backendType')} is memcache and ${variableName('memcacheSrv')} is not set either`,
      )
    : undefined;

const serversAreNamedOnce: Check = (s, { problem, variableName }) =>
  s.backendType === 'memcache' && s.memcacheHostPort.length > 0 && s.memcacheSrv !== ''
    ? problem('memcacheSrv', `nothing, because ${variableName('memcacheHostPort')} names the servers already`)
    : undefined;

const serversAreAddresses: Check = (s, { problem }) => {
  const bad = s.memcacheHostPort.find((server) => parseServerAddress(server) === undefined);
  return bad === undefined || s.backendType !== 'memcache'
    ? undefined
    : {
        ...problem('memcacheHostPort', 'host:port,host:port; an IPv6 address as [::1]:11211'),
        value: JSON.stringify(bad),
      };
};

const srvIsOne: Check = (s, { problem }) =>
  s.backendType === 'memcache' && s.memcacheSrv !== '' && !isSrvName(s.memcacheSrv)
    ? problem(
        'memcacheSrv',
        '_service._proto.name, such as _memcache._tcp.memcached.default.svc.cluster.local',
      )
    : undefined;

const clientPair: Check = (s, { problem }) =>
  (s.memcacheTlsClientCert === '') === (s.memcacheTlsClientKey === '')
    ? undefined
    : problem(
        s.memcacheTlsClientCert === '' ? 'memcacheTlsClientCert' : 'memcacheTlsClientKey',
        'a PEM file: certificate and key belong together',
      );

export const memcacheChecks: readonly Check[] = [
  serversAreNamed,
  serversAreNamedOnce,
  serversAreAddresses,
  srvIsOne,
  clientPair,
];

/** Names the store when it cannot decide several counters together; undefined when it can. */
export function describeNotAtomic(
  settings: Pick<Settings, 'backendType' | 'redisType' | 'redisPerSecond'>,
): string | undefined {
  if (settings.backendType === 'memcache') return 'memcached';
  if (settings.backendType !== 'redis') return undefined;
  if (settings.redisType === 'cluster') return 'a Redis Cluster';
  return settings.redisPerSecond ? 'a Redis with another one for seconds' : undefined;
}
