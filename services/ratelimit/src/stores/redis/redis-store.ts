import { backoffDelays } from '@tollgate/kit/backoff';
import { FailureLog } from '@tollgate/kit/logger';
import type { Setting } from '@tollgate/kit/settings';
import type { CounterResult } from '../../algorithms/algorithm.ts';
import {
  describeRedisAddress,
  describeRedisTarget,
  getSharedOptions,
  parseRedisTarget,
  type RedisAddress,
  type RedisTarget,
} from '../../config/redis-target.ts';
import type { Settings } from '../../config/settings.ts';
import { redisSettings } from '../../config/stores.ts';
import type { Context } from '../../context.ts';
import { backendFailure } from '../../errors.ts';
import type { poolPrefixes } from '../../metrics/names.ts';
import { createTlsStats } from '../../metrics/server-stats.ts';
import type { CircuitBreakerOptions } from '../circuit-breaker.ts';
import { type CounterStore, type Hit, type SharedStore, sendInParts } from '../counter-store.ts';
import { watchStoreTls } from '../store-tls.ts';
import { ClusterInstance } from './cluster/cluster.ts';
import { nodeAddress } from './cluster/slots.ts';
import { RedisConnection, type RedisTls } from './connection.ts';
import { createCredentials } from './credentials/create.ts';
import type { CredentialSource, Login } from './credentials/login.ts';
import {
  PooledInstance,
  type PooledInstanceHooks,
  type PooledInstanceOptions,
  type RedisInstance,
} from './instance.ts';
import { SentinelInstance } from './sentinel.ts';
import { RedisSharedStore } from './shared-store.ts';
import { AvailabilityLog, ClusterLog, PoolMetrics, SentinelLog } from './telemetry.ts';

/**
 * Backoff of reconnects. The first pause is short, because most losses are a stall or a failover of
 * moments; the maximum limits how much later than Redis the service recovers.
 */
const reconnect = { initialMs: 50, maxMs: 5_000 };

interface InstanceSettings {
  readonly type: RedisTarget['kind'];
  readonly url: string;
  /** Says that the URL is the default, which is hardly ever right; absent otherwise. */
  readonly hint: string | undefined;
  readonly socketType: string;
  readonly login: Login;
  readonly sentinelLogin: Login;
  readonly tls: () => RedisTls;
  /** The URL may require TLS as well. */
  readonly useTls: boolean;
  readonly pool: PooledInstanceOptions;
  readonly startBackoff: { readonly initialMs: number; readonly maxMs: number };
  readonly store: keyof typeof poolPrefixes;
  /** Name of the health component; absent when health does not depend on connections. */
  readonly healthName: string | undefined;
}

/** BACKEND_TYPE=redis. */
export async function createRedisStore(settings: Settings, context: Context): Promise<CounterStore> {
  const tls = await watchRedisTls(settings, context);
  const parts = { tls: tls.current, breaker: getBreaker(settings, context) };
  const mainCredentials = await createCredentials('redis', settings, {
    ...context,
    store: stores.redis,
  });
  const perSecondCredentials = await createCredentials('redisPerSecond', settings, {
    ...context,
    store: stores.redisPerSecond,
  });
  const mainSettings = getInstanceSettings('redis', settings, { ...parts, ...mainCredentials.logins });
  const perSecondSettings = getInstanceSettings('redisPerSecond', settings, {
    ...parts,
    ...perSecondCredentials.logins,
  });
  const main = createInstance(mainSettings, context);
  const perSecond = settings.redisPerSecond ? createInstance(perSecondSettings, context) : undefined;
  mainSettings.login.onChange(() => main.reauthenticate());
  perSecondSettings.login.onChange(() => perSecond?.reauthenticate());
  return new RedisStore({
    main,
    perSecond,
    shared: new RedisSharedStore({
      main,
      instances: perSecond === undefined ? [main] : [main, perSecond],
      keyPrefix: settings.cacheKeyPrefix,
      login: mainSettings.login,
      logger: context.logger,
      reconnectDelayMs: backoffDelays({ ...reconnect, jitter: 0.5, random: context.random }),
    }),
    startTimeoutMs: settings.redisStartupMaxElapsedMs,
    hint: mainSettings.hint,
    credentials: [...mainCredentials.sources, ...perSecondCredentials.sources],
    onClose: tls.close,
  });
}

type RedisTlsSettings = Pick<
  Settings,
  'redisTlsCacert' | 'redisTlsClientCert' | 'redisTlsClientKey' | 'redisTlsSkipHostnameVerification'
>;

async function watchRedisTls(
  settings: RedisTlsSettings,
  { logger, stats }: Context,
): Promise<{ current(): RedisTls; close(): void }> {
  const { current, close } = await watchStoreTls(
    'KVSTORE_TLS',
    {
      caFile: settings.redisTlsCacert,
      certFile: settings.redisTlsClientCert,
      keyFile: settings.redisTlsClientKey,
    },
    {
      logger,
      onCertificate: (validity) => createTlsStats(stats).setValidity('redis_client', validity),
    },
  );
  const verifyHostname = !settings.redisTlsSkipHostnameVerification;
  return { current: () => ({ context: current(), verifyHostname }), close };
}

function getInstanceSettings(
  instance: 'redis' | 'redisPerSecond',
  settings: Settings,
  {
    tls,
    breaker,
    login,
    sentinelLogin,
  }: Pick<InstanceSettings, 'tls' | 'login' | 'sentinelLogin'> & {
    readonly breaker: CircuitBreakerOptions | undefined;
  },
): InstanceSettings {
  const isMain = instance === 'redis';
  const healthName = isMain ? 'redis' : 'redis per second';
  return {
    type: settings[`${instance}Type`],
    url: settings[`${instance}Url`],
    hint: getDefaultUrlHint(redisSettings[`${instance}Url`], settings[`${instance}Url`]),
    socketType: settings[`${instance}SocketType`],
    login,
    sentinelLogin,
    tls,
    useTls: settings[`${instance}Tls`],
    pool: {
      size: settings[`${instance}PoolSize`],
      onEmpty: settings[`${instance}PoolOnEmpty`],
      onEmptyWaitMs: settings[`${instance}PoolOnEmptyWaitMs`],
      timeoutMs: settings[`${instance}TimeoutMs`],
      windowMs: settings[`${instance}PipelineWindowMs`],
      breaker,
    },
    startBackoff: {
      initialMs: settings.redisStartupInitialIntervalMs,
      maxMs: settings.redisStartupMaxIntervalMs,
    },
    store: stores[instance],
    healthName: settings.redisHealthCheckActiveConnection ? healthName : undefined,
  };
}

/** Names of the instances in statistics. */
const stores = { redis: 'redis', redisPerSecond: 'redis_per_second' } as const;

function getBreaker(
  {
    redisBreakerFailures: failures,
    redisBreakerIntervalMs: initialMs,
    redisBreakerMaxIntervalMs: maxMs,
  }: Settings,
  { random }: Context,
): CircuitBreakerOptions | undefined {
  if (failures === 0) return undefined;
  return { failures, delayMs: backoffDelays({ initialMs, maxMs, jitter: 0.5, random }) };
}

function getDefaultUrlHint({ env, aliases, fallback }: Setting<string>, url: string): string | undefined {
  return url === fallback?.value
    ? `${[...aliases, env].join(' or ')} is not set, and this is its default: set it to the address of Redis`
    : undefined;
}

function createInstance(settings: InstanceSettings, context: Context): RedisInstance {
  const parsed = parseRedisTarget(settings.type, settings.url, settings.socketType);
  if (!parsed.ok) {
    throw new TypeError('the address was checked with the settings');
  }
  const { target } = parsed;
  const name = describeRedisTarget(target);
  const open = (address: RedisAddress, login = settings.login): RedisConnection =>
    new RedisConnection({
      address,
      login,
      tls: settings.useTls || (address.kind === 'tcp' && address.tls === true) ? settings.tls() : undefined,
    });
  const hooks = createHooks(settings, context, name);
  switch (target.kind) {
    case 'single':
      return new PooledInstance({ ...hooks, open: () => open(target.address) }, settings.pool);
    case 'sentinel': {
      const log = new SentinelLog(context.logger, name);
      return new SentinelInstance(
        {
          ...hooks,
          openPrimary: open,
          openSentinel: (address) => open(address, settings.sentinelLogin),
          onPrimary: (address) => log.onPrimary(describeRedisAddress(address)),
          onSentinels: (error) => log.onSentinels(error),
        },
        { ...settings.pool, ...target },
      );
    }
    case 'cluster':
      return new ClusterInstance(
        {
          ...hooks,
          seeds: target.nodes.map(({ host, port }) => nodeAddress(host, port)),
          open: ({ host, port }) => open({ ...getSharedOptions(target.nodes), kind: 'tcp', host, port }),
          log: new ClusterLog(context.logger, name),
        },
        settings.pool,
      );
  }
}

/** Reports of all kinds of instances, and their backoffs. */
function createHooks(
  { healthName, store, startBackoff, hint }: InstanceSettings,
  { health, logger, random, stats }: Context,
  redis: string,
): Omit<PooledInstanceHooks, 'open'> {
  const component = healthName === undefined ? undefined : health.component(healthName, { healthy: true });
  const log = new AvailabilityLog(logger, redis);
  const metrics = new PoolMetrics(store, stats);
  const refusals = new FailureLog({
    logger,
    level: 'error',
    message: 'Redis refused changed credentials, open connections keep theirs',
  });
  return {
    metrics,
    onLogin(refusal) {
      metrics.loggedIn(refusal !== undefined);
      if (refusal !== undefined) refusals.log(refusal, { redis });
    },
    startDelayMs: backoffDelays({ ...startBackoff, jitter: 0.5, random }),
    reconnectDelayMs: backoffDelays({ ...reconnect, jitter: 0.5, random }),
    onAvailable(available) {
      component?.set(available);
      log.onAvailable(available);
    },
    onError: (err) =>
      logger.warn({ redis, err, ...(hint !== undefined && { hint }) }, 'Redis connection failed'),
    onBreakerOpen: (error, retryMs) => log.onBreakerOpen(error, retryMs),
    onBreakerClose: () => log.onBreakerClose(),
  };
}

interface RedisBackendOptions {
  readonly main: RedisInstance;
  /** The instance for counters of seconds; absent when `main` has them. */
  readonly perSecond?: RedisInstance | undefined;
  readonly shared?: SharedStore | undefined;
  /** How long `start` waits for the first connections, milliseconds; 0 sets no limit. */
  readonly startTimeoutMs: number;
  /** Where the logins of the instances come from, unless they are fixed. */
  readonly credentials?: readonly CredentialSource[] | undefined;
  /** Appended to the error of a start that timed out. */
  readonly hint?: string | undefined;
  /** Called once the connections are closed. */
  readonly onClose?: (() => void) | undefined;
}

/**
 * Counters in Redis. Counters of seconds, which are many and short-lived, may have their own
 * instance.
 */
export class RedisStore implements CounterStore {
  readonly shared: SharedStore | undefined;
  /** Absent on a cluster or two instances, where rules that need it are not loaded. */
  readonly takeAllOrNone: CounterStore['takeAllOrNone'];
  readonly #options: RedisBackendOptions;
  readonly #closing = new AbortController();
  readonly #instances: readonly RedisInstance[];

  constructor(options: RedisBackendOptions) {
    const { main, perSecond, shared } = options;
    this.shared = shared;
    this.takeAllOrNone = perSecond === undefined ? main.takeAllOrNone?.bind(main) : undefined;
    this.#options = options;
    this.#instances = perSecond === undefined ? [main] : [main, perSecond];
  }

  take(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    const { main, perSecond } = this.#options;
    return perSecond === undefined ? main.take(hits) : sendToBoth(main, perSecond, 'take', hits);
  }

  peek(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    const { main, perSecond } = this.#options;
    return perSecond === undefined ? main.peek(hits) : sendToBoth(main, perSecond, 'peek', hits);
  }

  async start({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { startTimeoutMs } = this.#options;
    const stop = (): void => this.#closeAll(backendFailure('stopped while connecting to Redis'));
    const timer = startTimeoutMs === 0 ? undefined : setTimeout(() => this.#giveUp(), startTimeoutMs);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const { credentials = [] } = this.#options;
      await Promise.all(credentials.map((source) => source.start(this.#closing.signal)));
      await Promise.all(this.#instances.map((instance) => instance.start()));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    }
  }

  close(): Promise<void> {
    this.#closeAll();
    this.#options.onClose?.();
    return Promise.resolve();
  }

  #closeAll(reason?: Error): void {
    this.#closing.abort(reason);
    for (const source of this.#options.credentials ?? []) source.close();
    for (const instance of this.#instances) {
      instance.close(reason);
    }
  }

  #giveUp(): void {
    const { startTimeoutMs, hint } = this.#options;
    const cause = [...this.#instances, ...(this.#options.credentials ?? [])]
      .map((part) => part.lastError())
      .find((error) => error !== undefined);
    const reason = cause?.message ?? 'the first attempt is still pending (KVSTORE_TIMEOUT limits each)';
    const limit = `${startTimeoutMs}ms (KVSTORE_STARTUP_MAX_ELAPSED_TIME)`;
    const suffix = hint === undefined ? '' : ` (${hint})`;
    this.#closeAll(backendFailure(`no connection to Redis within ${limit}: ${reason}${suffix}`, cause));
  }
}

function sendToBoth(
  main: RedisInstance,
  perSecond: RedisInstance,
  method: 'take' | 'peek',
  hits: readonly Hit[],
): Promise<readonly CounterResult[]> {
  return sendInParts(
    hits,
    ({ unit }) => (unit === 'second' ? perSecond : main),
    (instance, part) => instance[method](part),
  );
}
