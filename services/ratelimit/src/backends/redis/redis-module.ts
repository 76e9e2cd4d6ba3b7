import { backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import type { Setting } from '@tollgate/kit/settings';
import { redisSettings } from '../../config/redis.ts';
import type { Settings } from '../../config/settings.ts';
import type { Context } from '../../context.ts';
import { poolStatNames, statsNames } from '../../stats/names.ts';
import { createTlsStats } from '../../stats/server-stats.ts';
import type { CounterBackend } from '../counter-backend.ts';
import { watchStoreTls } from '../store-tls.ts';
import { ClusterInstance, ClusterLog } from './cluster/cluster.ts';
import { nodeAddress } from './cluster/slots.ts';
import { RedisConnection, type RedisTls } from './connection.ts';
import type { ConnectionPoolHooks, PoolMetrics } from './connection-pool.ts';
import {
  PooledInstance,
  type PooledInstanceOptions,
  RedisBackend,
  type RedisInstance,
} from './redis-backend.ts';
import { type SentinelHooks, SentinelInstance } from './sentinel.ts';
import {
  describeRedisAddress,
  describeRedisTarget,
  getSharedOptions,
  parseRedisAuth,
  parseRedisTarget,
  type RedisAddress,
  type RedisTarget,
} from './target.ts';

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
  readonly auth: string;
  readonly sentinelAuth: string;
  readonly tls: () => RedisTls;
  /** The URL may require TLS as well. */
  readonly useTls: boolean;
  readonly pool: PooledInstanceOptions;
  readonly startBackoff: { readonly initialMs: number; readonly maxMs: number };
  readonly statsPrefix: string;
  /** Name of the health component; absent when health does not depend on connections. */
  readonly healthName: string | undefined;
}

/** BACKEND_TYPE=redis. */
export async function createRedisBackend(settings: Settings, context: Context): Promise<CounterBackend> {
  const tls = await watchRedisTls(settings, context);
  const mainSettings = getInstanceSettings('redis', settings, tls.current);
  const perSecondSettings = getInstanceSettings('redisPerSecond', settings, tls.current);
  return new RedisBackend({
    main: createInstance(mainSettings, context),
    perSecond: settings.redisPerSecond ? createInstance(perSecondSettings, context) : undefined,
    startTimeoutMs: settings.redisStartupMaxElapsedMs,
    hint: mainSettings.hint,
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
  tls: () => RedisTls,
): InstanceSettings {
  const isMain = instance === 'redis';
  const healthName = isMain ? 'redis' : 'redis per second';
  return {
    type: settings[`${instance}Type`],
    url: settings[`${instance}Url`],
    hint: getDefaultUrlHint(redisSettings[`${instance}Url`], settings[`${instance}Url`]),
    socketType: settings[`${instance}SocketType`],
    auth: settings[`${instance}Auth`],
    sentinelAuth: settings[`${instance}SentinelAuth`],
    tls,
    useTls: settings[`${instance}Tls`],
    pool: {
      size: settings[`${instance}PoolSize`],
      onEmpty: settings[`${instance}PoolOnEmpty`],
      onEmptyWaitMs: settings[`${instance}PoolOnEmptyWaitMs`],
      timeoutMs: settings[`${instance}TimeoutMs`],
      windowMs: settings[`${instance}PipelineWindowMs`],
    },
    startBackoff: {
      initialMs: settings.redisStartupInitialIntervalMs,
      maxMs: settings.redisStartupMaxIntervalMs,
    },
    statsPrefix: isMain ? statsNames.redisPoolPrefix : statsNames.redisPerSecondPoolPrefix,
    healthName: settings.redisHealthCheckActiveConnection ? healthName : undefined,
  };
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
  const open = (address: RedisAddress, auth = settings.auth): RedisConnection =>
    new RedisConnection({
      address,
      credentials: parseRedisAuth(auth),
      tls: settings.useTls || (address.kind === 'tcp' && address.tls === true) ? settings.tls() : undefined,
    });
  const hooks = createHooks(settings, context, name);
  switch (target.kind) {
    case 'single':
      return new PooledInstance({ ...hooks, open: () => open(target.address) }, settings.pool);
    case 'sentinel':
      return new SentinelInstance(
        {
          ...hooks,
          openPrimary: open,
          openSentinel: (address) => open(address, settings.sentinelAuth),
          ...createSentinelLog(context.logger, name),
        },
        { ...settings.pool, ...target },
      );
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

/** What all kinds of instances report, and their backoffs. */
function createHooks(
  { healthName, statsPrefix, startBackoff, hint }: InstanceSettings,
  { health, logger, random, stats }: Context,
  redis: string,
): Omit<ConnectionPoolHooks, 'open'> {
  const component = healthName === undefined ? undefined : health.component(healthName, { healthy: true });
  const logAvailability = createAvailabilityLog(logger, redis);
  return {
    metrics: createPoolMetrics(statsPrefix, stats),
    startDelayMs: backoffDelays({ ...startBackoff, jitter: 0.5, random }),
    reconnectDelayMs: backoffDelays({ ...reconnect, jitter: 0.5, random }),
    onAvailable(available) {
      component?.set(available);
      logAvailability(available);
    },
    onError: (err) =>
      logger.warn({ redis, err, ...(hint !== undefined && { hint }) }, 'Redis connection failed'),
  };
}

/** Logs changes of the primary as warnings, and when the sentinels are lost and recover. */
function createSentinelLog(
  logger: Logger,
  redis: string,
): Required<Pick<SentinelHooks, 'onPrimary' | 'onSentinels'>> {
  let before: string | undefined;
  return {
    onPrimary(address) {
      const primary = describeRedisAddress(address);
      if (before === undefined) logger.info({ redis, primary }, 'sentinels named the primary');
      else logger.warn({ redis, primary, before }, 'sentinels named another primary');
      before = primary;
    },
    onSentinels(err) {
      if (err === undefined) logger.warn({ redis }, 'sentinels name the primary again');
      else logger.warn({ redis, err }, 'no sentinel names the primary, a failover would be missed');
    },
  };
}

/** Logs outages of Redis with their end as warnings; the first connection is an info. */
function createAvailabilityLog(logger: Logger, redis: string): (available: boolean) => void {
  let lost = false;
  return (available) => {
    if (!available) logger.warn({ redis }, 'lost the last connection to Redis');
    else if (lost) logger.warn({ redis }, 'connected to Redis again');
    else logger.info({ redis }, 'connected to Redis');
    lost ||= !available;
  };
}

function createPoolMetrics(prefix: string, stats: Context['stats']): PoolMetrics {
  const active = stats.gauge(`${prefix}${poolStatNames.active}`);
  const total = stats.counter(`${prefix}${poolStatNames.total}`);
  const closed = stats.counter(`${prefix}${poolStatNames.closed}`);
  const exhausted = stats.counter(`${prefix}${poolStatNames.exhausted}`);
  return {
    opened() {
      active.value += 1;
      total.value += 1;
    },
    closed() {
      active.value -= 1;
      closed.value += 1;
    },
    exhausted() {
      exhausted.value += 1;
    },
  };
}
