import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findReplaced, formatSettingProblems, type SettingProblem } from '@tollgate/kit/settings';
import t from 'tap';
import { readSettings, type Settings, settingsSpec } from '../../src/config/settings.ts';

type Key = keyof typeof settingsSpec;

function settingsOf(env: Readonly<Record<string, string>>): Settings {
  const read = readSettings(env);
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  return read.settings;
}

function problemsOf(env: Readonly<Record<string, string>>): readonly SettingProblem[] {
  const read = readSettings(env);
  return read.ok ? [] : read.problems;
}

/**
 * Every setting: its variables, its default, a text it takes with what that is read as, and texts
 * it does not take.
 */
const table: Readonly<
  Record<Key, readonly [names: string, byDefault: unknown, set: string, read: unknown, ...bad: string[]]>
> = {
  host: ['HOST', '0.0.0.0', '::1', '::1'],
  port: ['PORT', 8080, '0', 0, '65536', '', 'http'],
  grpcHost: ['GRPC_HOST', '0.0.0.0', '127.0.0.1', '127.0.0.1'],
  grpcPort: ['GRPC_PORT', 8081, '9000', 9000, '-1'],
  grpcUds: ['GRPC_UDS', '', '/run/ratelimit.sock', '/run/ratelimit.sock'],
  grpcMaxConnectionAgeMs: ['GRPC_MAX_CONNECTION_AGE', 86_400_000, '1h30m', 5_400_000, '30', '-1s'],
  grpcMaxConnectionAgeGraceMs: ['GRPC_MAX_CONNECTION_AGE_GRACE', 3_600_000, '0', 0, ''],
  grpcMaxConnections: ['GRPC_MAX_CONNECTIONS', 10_000, '0', 0, '-1', 'many'],
  clientBufferMaxBytes: ['CLIENT_BUFFER_MAX_BYTES', 67_108_864, '16777216', 16_777_216, '16777215', '64Mi'],
  debugHost: ['DEBUG_HOST', '0.0.0.0', 'localhost', 'localhost'],
  debugPort: ['DEBUG_PORT', 6070, '6071', 6071, '1.5'],
  shutdownDelayMs: ['SHUTDOWN_DELAY', 0, '500ms', 500, '5'],
  drainTimeoutMs: ['DRAIN_TIMEOUT', 20_000, '1m', 60_000, 'soon'],
  logLevel: ['LOG_LEVEL', 'warn', 'WARNING', 'warn', 'loud', ''],
  logFormat: ['LOG_FORMAT', 'text', 'JSON', 'json', 'xml'],
  grpcServerUseTls: ['GRPC_SERVER_USE_TLS', false, 'F', false, 'yes', ''],
  grpcServerTlsCert: ['GRPC_SERVER_TLS_CERT', '', '/tls/tls.crt', '/tls/tls.crt'],
  grpcServerTlsKey: ['GRPC_SERVER_TLS_KEY', '', '/tls/tls.key', '/tls/tls.key'],
  grpcClientTlsCacert: ['GRPC_CLIENT_TLS_CACERT GRPC_SERVER_TLS_CA_CERT', '', '', ''],
  grpcClientTlsSan: ['GRPC_CLIENT_TLS_SAN', '', '', ''],
  adminPort: ['ADMIN_PORT', 0, '0', 0, '65536', 'off'],
  adminHost: ['ADMIN_HOST', '127.0.0.1', '::1', '::1'],
  adminPlaintext: ['ADMIN_PLAINTEXT', false, 'true', true, 'on'],
  adminToken: ['ADMIN_TOKEN', '', 'sesame-sesame-16', 'sesame-sesame-16', 'too-short', 'with a blank in it'],
  adminTokens: ['ADMIN_TOKENS', '', 'app:read:sesame-sesame-16', 'app:read:sesame-sesame-16'],
  adminKeysUrl: ['ADMIN_KEYS_URL', '', '', '', 'auth:9999', 'https://u:p@auth'],
  adminKeysToken: ['ADMIN_KEYS_TOKEN', '', '', ''],
  adminTlsCert: ['ADMIN_TLS_CERT', '', '', ''],
  adminTlsKey: ['ADMIN_TLS_KEY', '', '', ''],
  adminTlsClientCacert: ['ADMIN_TLS_CLIENT_CACERT', '', '', ''],
  adminTlsClientSan: ['ADMIN_TLS_CLIENT_SAN', '', '', ''],
  configType: ['CONFIG_TYPE', 'FILE', 'grpc_xds_sotw', 'GRPC_XDS_SOTW', 'GRPC', ''],
  forceStartWithoutInitialConfig: ['FORCE_START_WITHOUT_INITIAL_CONFIG', false, 'True', true, 'on'],
  runtimeRoot: ['RUNTIME_ROOT', '/srv/runtime_data/current', '/rules', '/rules'],
  runtimeSubdirectory: ['RUNTIME_SUBDIRECTORY', '', 'ratelimit', 'ratelimit'],
  candidateRuntimeSubdirectory: ['CANDIDATE_RUNTIME_SUBDIRECTORY', '', 'candidate', 'candidate'],
  runtimeAppdirectory: ['RUNTIME_APPDIRECTORY', 'config', '', ''],
  runtimeIgnoreDotFiles: ['RUNTIME_IGNOREDOTFILES', false, '1', true, '2'],
  runtimeWatchRoot: ['RUNTIME_WATCH_ROOT', true, '0', false, 'no'],
  mergeDomainConfig: ['MERGE_DOMAIN_CONFIG', false, 't', true, 'tRUE'],
  healthyWithAtLeastOneConfigLoaded: [
    'HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED',
    false,
    'TRUE',
    true,
    ' true',
  ],
  xdsServerUrl: [
    'CONFIG_GRPC_XDS_SERVER_URL',
    'localhost:18000',
    'xds:1',
    'xds:1',
    'http://xds:1',
    '',
    'localhost',
    '[::1]',
    '::1',
    'dns:///xds',
  ],
  xdsNodeId: ['CONFIG_GRPC_XDS_NODE_ID', 'default', 'pod-1', 'pod-1'],
  xdsLimiterClass: ['CONFIG_GRPC_XDS_LIMITER_CLASS', '', 'edge-eu', 'edge-eu', 'Edge'],
  xdsMatchReportIntervalMs: ['CONFIG_GRPC_XDS_MATCH_REPORT_INTERVAL', 60_000, '0', 0, 'never'],
  xdsNodeMetadata: ['CONFIG_GRPC_XDS_NODE_METADATA', {}, 'a=b,c=d:e', { a: 'b', c: 'd:e' }, 'a:b'],
  xdsAdditionalHeaders: [
    'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    {},
    'authorization:abc,x-y:z',
    { authorization: 'abc', 'x-y': 'z' },
    'authorization',
    'grpc-timeout:1',
    'key-bin:1',
    'a b:c',
    'a:ü',
  ],
  xdsConnectRetryIntervalMs: ['CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL', 3_000, '100ms', 100, '3'],
  xdsBackoffInitialIntervalMs: ['XDS_CLIENT_BACKOFF_INITIAL_INTERVAL', 10_000, '1s', 1_000, ''],
  xdsBackoffMaxIntervalMs: ['XDS_CLIENT_BACKOFF_MAX_INTERVAL', 60_000, '2m', 120_000, '2'],
  xdsBackoffRandomFactor: ['XDS_CLIENT_BACKOFF_RANDOM_FACTOR', 0.5, '0', 0, 'half'],
  xdsBackoffJitter: ['XDS_CLIENT_BACKOFF_JITTER', true, 'false', false, 'none'],
  xdsMaxMessageBytes: ['XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES', 67_108_864, '0', 0, '4MiB', ''],
  xdsServerUseTls: ['CONFIG_GRPC_XDS_SERVER_USE_TLS', false, 'true', true, 'tls'],
  xdsServerTlsCacert: ['CONFIG_GRPC_XDS_SERVER_TLS_CACERT', '', '/tls/ca.crt', '/tls/ca.crt'],
  xdsClientTlsCert: ['CONFIG_GRPC_XDS_CLIENT_TLS_CERT', '', '', ''],
  xdsClientTlsKey: ['CONFIG_GRPC_XDS_CLIENT_TLS_KEY', '', '', ''],
  xdsServerTlsSan: ['CONFIG_GRPC_XDS_SERVER_TLS_SAN', '', 'xds.test', 'xds.test'],
  shadowMode: ['SHADOW_MODE', false, 'true', true, 'shadow'],
  quotaMode: ['QUOTA_MODE', false, 'T', true, ''],
  useCalendarMonths: ['USE_CALENDAR_MONTH_RATE_LIMIT', false, 'true', true, ''],
  nearLimitRatio: ['NEAR_LIMIT_RATIO', 0.8, '0.25', 0.25, '80%', ''],
  responseHeadersEnabled: ['LIMIT_RESPONSE_HEADERS_ENABLED', false, 'true', true, 'enabled'],
  limitHeader: ['LIMIT_LIMIT_HEADER', 'RateLimit-Limit', 'X-Limit', 'X-Limit', '', 'Rate Limit'],
  remainingHeader: [
    'LIMIT_REMAINING_HEADER',
    'RateLimit-Remaining',
    'X-Remaining',
    'X-Remaining',
    'a\r\nb: c',
    'X-é',
  ],
  resetHeader: ['LIMIT_RESET_HEADER', 'RateLimit-Reset', 'X-Reset', 'X-Reset', ':reset', 'a,b', 'Reset\n'],
  standardHeadersEnabled: ['LIMIT_STANDARD_HEADERS_ENABLED', false, 'true', true, 'on'],
  responseDynamicMetadata: ['RESPONSE_DYNAMIC_METADATA', false, 'true', true, 'metadata'],
  onStoreFailure: ['LIMIT_ON_STORE_FAILURE', 'fail', 'Deny', 'deny', 'open'],
  onStoreFailureReplicas: ['LIMIT_ON_STORE_FAILURE_REPLICAS', 1, '3', 3, '0', '2.5'],
  backendType: ['BACKEND_TYPE', 'redis', 'Memory', 'memory', 'memcached', 'postgres'],
  memoryMaxCounters: ['MEMORY_MAX_COUNTERS', 1_000_000, '10', 10, '0', '1e6'],
  cacheKeyPrefix: ['CACHE_KEY_PREFIX', '', 'blue:', 'blue:'],
  cacheKeyEscape: ['CACHE_KEY_ESCAPE', false, 'true', true],
  expirationJitterMaxSeconds: ['EXPIRATION_JITTER_MAX_SECONDS', 300, '0', 0, '5m'],
  localCacheSizeBytes: [
    'LocalCacheSizeInBytes LOCAL_CACHE_SIZE_IN_BYTES',
    0,
    '1048576',
    1_048_576,
    '1MB',
    '-1',
  ],
  stopIncrementWhenOverLimit: ['STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', false, 'true', true, 'stop'],
  ...instance('redis', '', '/var/run/nutcracker/ratelimit.sock'),
  ...instance('redisPerSecond', 'PERSECOND_', '/var/run/nutcracker/ratelimitpersecond.sock'),
  redisTlsClientCert: [both('TLS_CLIENT_CERT'), '', '', ''],
  redisTlsClientKey: [both('TLS_CLIENT_KEY'), '', '', ''],
  redisTlsCacert: [both('TLS_CACERT'), '', '/tls/ca.crt', '/tls/ca.crt'],
  redisTlsSkipHostnameVerification: [both('TLS_SKIP_HOSTNAME_VERIFICATION'), false, 'true', true, 'skip'],
  redisHealthCheckActiveConnection: [both('HEALTH_CHECK_ACTIVE_CONNECTION'), false, 'true', true, ''],
  redisStartupInitialIntervalMs: [both('STARTUP_INITIAL_INTERVAL'), 1_000, '10ms', 10, '1'],
  redisStartupMaxIntervalMs: [both('STARTUP_MAX_INTERVAL'), 30_000, '1m', 60_000, ''],
  redisBreakerFailures: [both('BREAKER_FAILURES'), 0, '5', 5, '-1', 'off'],
  redisBreakerIntervalMs: [both('BREAKER_INTERVAL'), 1_000, '250ms', 250, '1'],
  redisBreakerMaxIntervalMs: [both('BREAKER_MAX_INTERVAL'), 5_000, '30s', 30_000, '1'],
  redisStartupMaxElapsedMs: [both('STARTUP_MAX_ELAPSED_TIME'), 0, '5m', 300_000, 'never'],
  memcacheHostPort: [mcache('HOST_PORT'), [], 'a:1, [::1]:2', ['a:1', '[::1]:2']],
  memcacheSrv: [mcache('SRV'), '', '_memcache._tcp.example.com', '_memcache._tcp.example.com'],
  memcacheSrvRefreshMs: [mcache('SRV_REFRESH'), 0, '30', 30_000, '-1', 'often', ''],
  memcacheMaxIdleConnections: [mcache('MAX_IDLE_CONNS'), 2, '0', 0, '1.5', ''],
  memcacheTimeoutMs: ['MCACHE_TIMEOUT', 500, '20ms', 20, '1'],
  memcacheTls: [mcache('TLS'), false, 'true', true, 'tls'],
  memcacheTlsClientCert: [mcache('TLS_CLIENT_CERT'), '', '', ''],
  memcacheTlsClientKey: [mcache('TLS_CLIENT_KEY'), '', '', ''],
  memcacheTlsCacert: [mcache('TLS_CACERT'), '', '/tls/ca.crt', '/tls/ca.crt'],
  memcacheTlsSkipHostnameVerification: [mcache('TLS_SKIP_HOSTNAME_VERIFICATION'), false, 'true', true, ''],
  redisPerSecond: [both('PERSECOND'), false, 'true', true, 'per second'],
  usePushStats: ['USE_PUSHSTATS USE_STATSD', true, 'false', false, 'udp'],
  useTagStatsd: ['USE_TAGSTATSD USE_DOG_STATSD', false, 'false', false, 'dog'],
  tagStatsdMogrifiers: [
    'TAGSTATSD_MOGRIFIERS USE_DOG_STATSD_MOGRIFIERS DOG_STATSD_MOGRIFIERS',
    [],
    'A, B',
    ['A', 'B'],
  ],
  usePullMetrics: ['USE_PULLMETRICS USE_PROMETHEUS', false, 'false', false, 'yes'],
  disableStats: ['DISABLE_STATS', false, 'true', true, ''],
  statsFlushIntervalMs: ['STATS_FLUSH_INTERVAL', 10_000, '1s', 1_000, '10'],
  extraTags: ['EXTRA_TAGS', {}, 'a:b,c:d:e', { a: 'b', c: 'd:e' }, ':b', 'a'],
  statsdHost: ['STATSD_HOST', 'localhost', 'statsd', 'statsd'],
  statsdPort: ['STATSD_PORT', 8125, '8126', 8126, '70000'],
  statsdProtocol: ['STATSD_PROTOCOL', 'tcp', 'UDP', 'udp', 'unix'],
  pullMetricsAddr: [
    'PULLMETRICS_ADDR PROMETHEUS_ADDR',
    ':9090',
    '[::1]:9091',
    '[::1]:9091',
    '9090',
    '::1:9090',
  ],
  pullMetricsPath: [
    'PULLMETRICS_PATH PROMETHEUS_PATH',
    '/metrics',
    '/stats/prometheus',
    '/stats/prometheus',
    'metrics',
    '',
  ],
  pullMetricsMapperYaml: [
    'PULLMETRICS_MAPPER_YAML PROMETHEUS_MAPPER_YAML',
    '',
    '/mapper.yaml',
    '/mapper.yaml',
  ],
  pullMetricsResponseTimeAsMilliseconds: [
    'PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
    false,
    'true',
    true,
    'ms',
  ],
  tracingEnabled: ['TRACING_ENABLED', false, 'true', true, 'otlp'],
  tracingExporterProtocol: ['TRACING_EXPORTER_PROTOCOL', 'http', 'grpc', 'grpc', 'zipkin'],
  tracingServiceName: ['TRACING_SERVICE_NAME', 'RateLimit', 'limiter', 'limiter'],
  tracingServiceNamespace: ['TRACING_SERVICE_NAMESPACE', '', 'edge', 'edge'],
  tracingServiceInstanceId: ['TRACING_SERVICE_INSTANCE_ID', '', 'one', 'one'],
  tracingSamplingRate: ['TRACING_SAMPLING_RATE', 1, '0.01', 0.01, '1%'],
};

/** A setting of Redis by our name and by that of envoyproxy/ratelimit. */
function both(name: string): string {
  return `KVSTORE_${name} REDIS_${name}`;
}

/** A setting of memcached by our name and by that of envoyproxy/ratelimit. */
function mcache(name: string): string {
  return `MCACHE_${name} MEMCACHE_${name}`;
}

function instance<const P extends string>(prefix: P, infix: string, url: string) {
  const name = (of: string): string => both(`${infix}${of}`);
  const rows = {
    SocketType: [name('SOCKET_TYPE'), 'unix', 'tcp', 'tcp', 'udp', ''],
    Url: [name('URL'), url, 'localhost:6379', 'localhost:6379'],
    Type: [name('TYPE'), 'single', 'SINGLE', 'single', 'replicated'],
    Auth: [name('AUTH'), '', 'user:password', 'user:password'],
    AuthFile: [name('AUTH_FILE'), '', '/auth/redis', '/auth/redis'],
    AuthUsernameFile: [name('AUTH_USERNAME_FILE'), '', '/auth/user', '/auth/user'],
    AuthCommand: [name('AUTH_COMMAND'), '', '/bin/token --redis', '/bin/token --redis'],
    AuthCommandTimeoutMs: [name('AUTH_COMMAND_TIMEOUT'), 10_000, '1s', 1_000, '1'],
    AuthCommandIntervalMs: [name('AUTH_COMMAND_INTERVAL'), 300_000, '1m', 60_000, '60'],
    SentinelAuthFile: [name('SENTINEL_AUTH_FILE'), '', '/auth/sentinel', '/auth/sentinel'],
    SentinelAuth: [name('SENTINEL_AUTH'), '', 'user:password', 'user:password'],
    Tls: [name('TLS'), false, 'true', true, 'tls'],
    TimeoutMs: [name('TIMEOUT'), 10_000, '250ms', 250, '10', '-1s'],
    PoolSize: [name('POOL_SIZE'), 10, '1', 1, '1.5'],
    PoolOnEmpty: [name('POOL_ON_EMPTY_BEHAVIOR'), 'create', 'WAIT', 'wait', 'panic', ''],
    PoolOnEmptyWaitMs: [name('POOL_ON_EMPTY_WAIT_DURATION'), 1_000, '0', 0, '1'],
    PipelineWindowMs: [name('PIPELINE_WINDOW'), 0, '150us', 0.15, '150'],
    ClusterPipelineParallelism: [name('CLUSTER_PIPELINE_PARALLELISM'), 1, '0', 0, '-1', ''],
    PipelineLimit: [name('PIPELINE_LIMIT'), 0, '8', 8, 'none'],
  } satisfies Record<string, readonly [string, unknown, string, unknown, ...string[]]>;
  type Rows = { readonly [K in keyof typeof rows & string as `${P}${K}`]: (typeof rows)[K] };
  // Object.fromEntries loses the names, which are made of the prefix and those just above.
  return Object.fromEntries(Object.entries(rows).map(([key, row]) => [`${prefix}${key}`, row])) as Rows;
}

/** Settings without which some others are refused. */
const companions: Partial<Record<Key, Readonly<Record<string, string>>>> = {
  redisPerSecond: { KVSTORE_PERSECOND_URL: '/run/redis.sock' },
  redisAuthUsernameFile: { KVSTORE_AUTH_FILE: '/auth/redis' },
};

for (const [key, [names, byDefault, set, expected, ...bad]] of Object.entries(table) as [
  Key,
  (typeof table)[Key],
][]) {
  t.test(
    `${names.split(' ')[0]} has its default, accepts each of its names, and rejects invalid values`,
    (t) => {
      const variables = names.split(' ');
      const { env, aliases } = settingsSpec[key];
      t.strictSame([env, ...aliases], variables);
      t.strictSame(settingsOf({})[key], byDefault, 'default');
      for (const variable of variables) {
        t.strictSame(
          settingsOf({ ...companions[key], [variable]: set })[key],
          expected,
          `${variable}=${set}`,
        );
        for (const value of bad) {
          t.match(problemsOf({ [variable]: value }), [{ variable }], `${variable}="${value}"`);
        }
      }
      t.end();
    },
  );
}

t.test('durations are limited to the maximum of a timer', (t) => {
  for (const [key, { env, form }] of Object.entries(settingsSpec)) {
    if (form.includes('a duration')) t.equal(settingsOf({ [env]: '720h' })[key as Key], 480 * 3_600_000, env);
  }
  t.end();
});

t.test('values out of range that envoyproxy/ratelimit accepts are replaced, with a warning', (t) => {
  const cases: readonly (readonly [key: Key, variable: string, value: string, used: string, read: number])[] =
    [
      ['redisTimeoutMs', 'REDIS_TIMEOUT', '0', '10s', 10_000],
      ['redisPerSecondTimeoutMs', 'REDIS_PERSECOND_TIMEOUT', '0s', '10s', 10_000],
      ['redisPoolSize', 'REDIS_POOL_SIZE', '5000', '1000', 1_000],
      ['redisPoolSize', 'KVSTORE_POOL_SIZE', '0', '1', 1],
      ['memcacheMaxIdleConnections', 'MEMCACHE_MAX_IDLE_CONNS', '2000', '1000', 1_000],
      ['nearLimitRatio', 'NEAR_LIMIT_RATIO', '1.5', '1', 1],
      ['nearLimitRatio', 'NEAR_LIMIT_RATIO', '-0.1', '0', 0],
      ['tracingSamplingRate', 'TRACING_SAMPLING_RATE', '100', '1', 1],
      ['xdsBackoffRandomFactor', 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR', '2', '1', 1],
      ['expirationJitterMaxSeconds', 'EXPIRATION_JITTER_MAX_SECONDS', '-1', '0', 0],
      ['expirationJitterMaxSeconds', 'EXPIRATION_JITTER_MAX_SECONDS', '63072000', '31536000', 31_536_000],
      ['grpcMaxConnectionAgeMs', 'GRPC_MAX_CONNECTION_AGE', '8760h', '480h', 1_728_000_000],
    ];
  for (const [key, variable, value, used, read] of cases) {
    t.equal(settingsOf({ [variable]: value })[key], read, `${variable}=${value}`);
    t.same(findReplaced(settingsSpec, { [variable]: value }), [{ variable, value, used }]);
  }
  t.same(findReplaced(settingsSpec, { REDIS_TIMEOUT: '5s', NEAR_LIMIT_RATIO: '0.5' }), []);
  t.end();
});

t.test('all problems are reported at once, with the variables that were set', (t) => {
  const problems = problemsOf({
    PORT: 'http',
    REDIS_POOL_SIZE: 'ten',
    REDIS_URL: 'localhost',
    REDIS_SOCKET_TYPE: 'tcp',
    GRPC_SERVER_USE_TLS: 'true',
    USE_PROMETHEUS: 'true',
  });
  t.strictSame(problems.map(({ variable }) => variable).sort(), [
    'GRPC_SERVER_TLS_CERT',
    'GRPC_SERVER_TLS_KEY',
    'PORT',
    'REDIS_POOL_SIZE',
    'REDIS_URL',
    'USE_PUSHSTATS',
  ]);
  t.end();
});

t.test('WORKERS above 1 fails the start and names replicas instead', (t) => {
  for (const WORKERS of ['4', '0', '']) {
    const [problem] = problemsOf({ WORKERS });
    t.match(problem, { variable: 'WORKERS', value: WORKERS, expected: /replicas instead/ });
  }
  t.match(
    formatSettingProblems(problemsOf({ WORKERS: '2', PORT: 'http' })),
    /WORKERS is "2".*PORT|PORT.*WORKERS/s,
  );
  t.strictSame(problemsOf({ WORKERS: '1' }), []);
  t.end();
});

t.test('an invalid address is shown without its credentials', (t) => {
  const url = 'redis://user:secret@localhost:port';
  const text = formatSettingProblems(problemsOf({ KVSTORE_URL: url }));
  t.match(text, /KVSTORE_URL is "redis:\/\/\*\*\*@localhost:port": expected host:port/);
  t.notMatch(text, /secret/);
  const second = problemsOf({ KVSTORE_PERSECOND: 'true', KVSTORE_PERSECOND_URL: 'a:1,b:2' });
  t.match(formatSettingProblems(second), /KVSTORE_PERSECOND_URL is "a:1,b:2": expected/);
  t.strictSame(problemsOf({ KVSTORE_PERSECOND_URL: 'a:1,b:2' }), [], 'not in use');
  t.strictSame(problemsOf({ KVSTORE_URL: 'a:1,b:2', BACKEND_TYPE: 'memory' }), [], 'not in use');
  t.end();
});

t.test('memcached fails open, so that no other failure policy is accepted', (t) => {
  const env = { BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: 'a:1' };
  const problems = problemsOf({ ...env, LIMIT_ON_STORE_FAILURE: 'deny' });
  t.match(
    formatSettingProblems(problems),
    /LIMIT_ON_STORE_FAILURE is "?deny"?: expected fail or allow, because BACKEND_TYPE is memcache/,
  );
  t.strictSame(problemsOf({ ...env, LIMIT_ON_STORE_FAILURE: 'allow' }), []);
  t.end();
});

t.test('MCACHE_HOST_PORT and MCACHE_SRV are exclusive', (t) => {
  const problems = (env: Record<string, string>) =>
    formatSettingProblems(problemsOf({ BACKEND_TYPE: 'memcache', ...env }));
  t.match(problems({}), /MCACHE_HOST_PORT is not set: expected .*BACKEND_TYPE is memcache/);
  t.match(
    problems({ MEMCACHE_HOST_PORT: 'a:1', MCACHE_SRV: '_m._tcp.x' }),
    /MCACHE_SRV is "_m._tcp.x": expected nothing, because MEMCACHE_HOST_PORT names/,
  );
  for (const bad of ['a', ':', 'a:0', 'a:65536', '::1:11211', 'http://a:1', 'u@a:1']) {
    const text = problems({ MCACHE_HOST_PORT: `ok:11211,${bad}` });
    t.match(text, `MCACHE_HOST_PORT is ${JSON.stringify(bad)}: expected host:port`);
  }
  for (const bad of ['memcached', '_memcache.example.com', '_a._b', 'a:11211']) {
    t.match(problems({ MCACHE_SRV: bad }), `MCACHE_SRV is ${JSON.stringify(bad)}: expected _service`);
  }
  t.strictSame(problemsOf({ MCACHE_HOST_PORT: 'a', MCACHE_SRV: 'b' }), [], 'not in use');
  t.strictSame(problemsOf({ BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: '[::1]:1,b:2,:3' }), []);
  t.strictSame(problemsOf({ BACKEND_TYPE: 'memcache', MCACHE_SRV: '_memcache._tcp.mc.default.svc' }), []);
  t.end();
});

t.test('problems do not show secrets', (t) => {
  const text = formatSettingProblems(
    problemsOf({ KVSTORE_AUTH: 'one-secret', REDIS_AUTH: 'another-secret' }),
  );
  t.match(text, /KVSTORE_AUTH and REDIS_AUTH is \(hidden\) and \(hidden\)/);
  t.notMatch(text, /-secret/);
  t.end();
});

t.test('a management server is any target of gRPC that names its port', (t) => {
  const targets = ['10.0.0.1:18000', '[::1]:18000', 'dns:xds:1', 'dns:///xds.tollgate.svc:18000'];
  targets.push(
    'dns://10.0.0.2/xds:18000',
    'ipv4:10.0.0.1:1,10.0.0.2:1',
    'ipv6:[::1]:1',
    'unix:/run/xds.sock',
  );
  for (const url of targets) t.equal(settingsOf({ CONFIG_GRPC_XDS_SERVER_URL: url }).xdsServerUrl, url);
  t.end();
});

const xdsWith = (env: Record<string, string>) => ({ CONFIG_TYPE: 'GRPC_XDS_SOTW', ...env });

t.test('dependent settings are checked', (t) => {
  const cases: readonly (readonly [env: Record<string, string>, variable: string])[] = [
    [{ GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: '/c' }, 'GRPC_SERVER_TLS_KEY'],
    [{ GRPC_CLIENT_TLS_CACERT: '/ca' }, 'GRPC_SERVER_USE_TLS'],
    [{ GRPC_CLIENT_TLS_SAN: 'envoy' }, 'GRPC_CLIENT_TLS_CACERT'],
    [{ ADMIN_PORT: '6071' }, 'ADMIN_TOKEN'],
    [{ ADMIN_PORT: '6071', ADMIN_TOKEN: 'sesame-sesame-16', ADMIN_HOST: '0.0.0.0' }, 'ADMIN_HOST'],
    [{ ADMIN_TLS_CERT: '/c' }, 'ADMIN_TLS_KEY'],
    [{ ADMIN_TLS_CLIENT_CACERT: '/ca' }, 'ADMIN_TLS_CERT'],
    [{ ADMIN_TLS_CLIENT_SAN: 'operator' }, 'ADMIN_TLS_CLIENT_CACERT'],
    [{ ADMIN_KEYS_URL: 'https://auth' }, 'ADMIN_KEYS_TOKEN'],
    [{ ADMIN_KEYS_TOKEN: 'tgk_x' }, 'ADMIN_KEYS_URL'],
    [{ ADMIN_TOKENS: 'app:all:sesame-sesame-16' }, 'ADMIN_TOKENS'],
    [{ ADMIN_TOKENS: 'app:reserve:sesame-sesame-16' }, 'ADMIN_TOKEN'],
    [{ ADMIN_TOKEN: 'sesame-sesame-16', ADMIN_TOKENS: 'app:read:sesame-sesame-16' }, 'ADMIN_TOKENS'],
    [{ KVSTORE_TLS_CLIENT_CERT: '/c' }, 'KVSTORE_TLS_CLIENT_KEY'],
    [{ REDIS_TLS_CLIENT_KEY: '/k' }, 'KVSTORE_TLS_CLIENT_CERT'],
    [{ MCACHE_TLS_CLIENT_CERT: '/c' }, 'MCACHE_TLS_CLIENT_KEY'],
    [{ MEMCACHE_TLS_CLIENT_KEY: '/k' }, 'MCACHE_TLS_CLIENT_CERT'],
    [{ CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/c' }, 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY'],
    [{ CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/k' }, 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT'],
    [xdsWith({ CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/ca' }), 'CONFIG_GRPC_XDS_SERVER_USE_TLS'],
    [xdsWith({ CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'xds' }), 'CONFIG_GRPC_XDS_SERVER_USE_TLS'],
  ];
  for (const [env, variable] of cases) {
    t.match(problemsOf(env), [{ variable }], variable);
  }
  t.end();
});

t.test('two sinks are rejected with the setting to change; none and DISABLE_STATS are valid', (t) => {
  const [pulled] = problemsOf({ USE_PULLMETRICS: 'true' });
  t.match(pulled, { variable: 'USE_PUSHSTATS', expected: /^false .*USE_PULLMETRICS is true/ });
  const [old] = problemsOf({ USE_PROMETHEUS: 'true', USE_STATSD: 'true' });
  t.match(old, { variable: 'USE_STATSD', expected: /^false.*USE_PROMETHEUS is true/ });
  t.strictSame(problemsOf({ USE_PULLMETRICS: 'true', USE_PUSHSTATS: 'false' }), []);
  t.strictSame(problemsOf({ USE_PULLMETRICS: 'true', DISABLE_STATS: 'true' }), []);
  t.strictSame(problemsOf({ USE_PUSHSTATS: 'false' }), []);
  t.end();
});

t.test('Envoy Gateway: its variables for tracing and Redis with TLS are accepted', (t) => {
  const settings = settingsOf({
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: 'redis.redis-system.svc:6379',
    REDIS_TLS: 'true',
    REDIS_TLS_CLIENT_CERT: '/redis-certs/tls.crt',
    REDIS_TLS_CLIENT_KEY: '/redis-certs/tls.key',
    TRACING_ENABLED: 'true',
    TRACING_SERVICE_NAME: 'envoy-ratelimit',
    TRACING_SERVICE_NAMESPACE: 'envoy-gateway-system',
    TRACING_SERVICE_INSTANCE_ID: 'envoy-ratelimit-5d8f9c7b6-x2x4z',
    TRACING_SAMPLING_RATE: '0.5',
  });
  t.match(settings, { tracingServiceName: 'envoy-ratelimit', tracingSamplingRate: 0.5 });
  t.end();
});

t.test('two sources of credentials for a Redis are an error that names both', (t) => {
  const wrong = [
    [{ KVSTORE_AUTH: 'a', KVSTORE_AUTH_FILE: '/f' }, /KVSTORE_AUTH_FILE is .*because KVSTORE_AUTH is set/],
    [
      { REDIS_AUTH: 'a', KVSTORE_AUTH_COMMAND: 'c' },
      /KVSTORE_AUTH_COMMAND is .*because (KVSTORE|REDIS)_AUTH is set/,
    ],
    [
      { KVSTORE_AUTH_FILE: '/f', KVSTORE_AUTH_COMMAND: 'c' },
      /_COMMAND is .*because KVSTORE_AUTH_FILE is set/,
    ],
    [
      { KVSTORE_AUTH_FILE: '/f', KVSTORE_URL: 'redis://user:secret@redis:6379' },
      /KVSTORE_AUTH_FILE is .*because KVSTORE_URL has credentials already/,
    ],
    [
      { KVSTORE_SENTINEL_AUTH: 'a', KVSTORE_SENTINEL_AUTH_FILE: '/f' },
      /because KVSTORE_SENTINEL_AUTH is set/,
    ],
    [{ KVSTORE_AUTH_USERNAME_FILE: '/u' }, /KVSTORE_AUTH_FILE.*because KVSTORE_AUTH_USERNAME_FILE is set/],
    [{ KVSTORE_AUTH_COMMAND: '["a"' }, /KVSTORE_AUTH_COMMAND is .*a program with its arguments/],
  ] as const;
  for (const [env, expected] of wrong) {
    const text = formatSettingProblems(problemsOf(env));
    t.match(text, expected);
    t.notMatch(text, 'secret');
    const perSecond = Object.fromEntries(
      Object.entries(env).map(([name, value]) => [name.replace(/^(KVSTORE|REDIS)_/, '$1_PERSECOND_'), value]),
    );
    t.strictSame(problemsOf({ BACKEND_TYPE: 'memory', ...env }), [], 'not in use');
    t.strictSame(problemsOf(perSecond), [], 'not in use');
    const second = problemsOf({
      KVSTORE_PERSECOND_URL: 'redis:6379',
      ...perSecond,
      KVSTORE_PERSECOND: 'true',
    });
    t.match(formatSettingProblems(second), /_PERSECOND_/);
  }
  t.strictSame(
    problemsOf({ KVSTORE_AUTH: 'a', KVSTORE_URL: 'redis://:b@redis:6379' }),
    [],
    'AUTH overrides a URL',
  );
  t.end();
});

t.test('settings that nothing reads are documented as such', async (t) => {
  const source = join(import.meta.dirname, '../../src');
  const definitions = /^config\/(?:admin|ratelimit|rules|server|stats|stores)\.ts$/;
  const files = (await readdir(source, { recursive: true })).filter(
    (file) => file.endsWith('.ts') && !definitions.test(file),
  );
  const code = (await Promise.all(files.map((file) => readFile(join(source, file), 'utf8')))).join('\n');
  // `chooseSink` reads these, beside their definition.
  const switches: readonly string[] = ['usePullMetrics', 'disableStats'];
  for (const [key, { env, doc }] of Object.entries(settingsSpec).filter(([key]) => !switches.includes(key))) {
    // Names of both Redis instances are computed from their prefix.
    const inInstance = key.replace(/^redis(?:PerSecond)?(?=[A-Z])/, '');
    const isUsed = new RegExp(`\\b${key}\\b|[}']${inInstance}\\b`).test(code);
    t.equal(isUsed, !/^Accepted.* no effect/i.test(doc), env);
  }
});
