import { backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import type { Setting } from '@tollgate/kit/settings';
import type { Redis } from 'ioredis';
import { redisSettings } from '../../config/redis.ts';
import { poolStatNames, statsNames } from '../../stats/names.ts';
import { createTlsStats } from '../../stats/server-stats.ts';
import type { BackendDeps, BackendModule } from '../counter-backend.ts';
import { clusterLog, createClusterInstance } from './cluster/cluster.ts';
import { nodeAddress } from './cluster/slots.ts';
import { openRedis, type RedisTls, watchRedisTls } from './connection.ts';
import type { ConnectionPoolDeps, PoolFigures } from './connection-pool.ts';
import { createPooledInstance, type PooledInstanceOptions, type RedisInstance } from './instance.ts';
import { createRedisBackend } from './redis-backend.ts';
import { createSentinelInstance, type SentinelInstanceDeps } from './sentinel.ts';
import {
  describeRedisAddress,
  describeRedisTarget,
  parseRedisAuth,
  parseRedisTarget,
  type RedisAddress,
  type RedisTarget,
  sharedByNodes,
} from './target.ts';

/**
 * Pauses between attempts to connect again. The first is short, because most losses are a stall or a failover of
 * moments; the last bounds how much later than Redis the service is back.
 */
const reconnect = { initialMs: 50, maxMs: 5_000 };

/** Settings of one of the two instances. */
interface InstanceSettings {
  readonly type: RedisTarget['kind'];
  readonly url: string;
  /** Says that the URL is its default, which is hardly ever where Redis is; absent when it is not. */
  readonly hint?: string | undefined;
  readonly socketType: string;
  readonly auth: string;
  /** For the sentinels; those without a password have none. */
  readonly sentinelAuth: string;
  /** What a connection that is made now is made with, where it has TLS. */
  readonly tls: () => RedisTls;
  /** The URL may ask for TLS as well. */
  readonly useTls: boolean;
  readonly timeoutMs: number;
  readonly poolSize: number;
  readonly poolOnEmpty: 'create' | 'error' | 'wait';
  readonly poolOnEmptyWaitMs: number;
  readonly pipelineWindowMs: number;
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
  /** Prefix of the pool's statistics. */
  readonly statsPrefix: string;
  /** Name of the health component; absent when health does not depend on connections. */
  readonly healthName?: string | undefined;
}

/** BACKEND_TYPE=redis. */
export const redisBackend: BackendModule = {
  async create(settings, deps) {
    const tls = await watchRedisTls(settings, {
      logger: deps.logger,
      onCertificate: (validity) => createTlsStats(deps.stats).setValidity('redis_client', validity),
    });
    const retry = {
      initialMs: settings.redisStartupInitialIntervalMs,
      maxMs: settings.redisStartupMaxIntervalMs,
    };
    const watched = settings.redisHealthCheckActiveConnection;
    const hint = defaultUrlHint(redisSettings.redisUrl, settings.redisUrl);
    const main = createInstance(
      {
        type: settings.redisType,
        url: settings.redisUrl,
        hint,
        socketType: settings.redisSocketType,
        auth: settings.redisAuth,
        sentinelAuth: settings.redisSentinelAuth,
        tls: tls.current,
        useTls: settings.redisTls,
        timeoutMs: settings.redisTimeoutMs,
        poolSize: settings.redisPoolSize,
        poolOnEmpty: settings.redisPoolOnEmpty,
        poolOnEmptyWaitMs: settings.redisPoolOnEmptyWaitMs,
        pipelineWindowMs: settings.redisPipelineWindowMs,
        retry,
        statsPrefix: statsNames.redisPoolPrefix,
        healthName: watched ? 'redis' : undefined,
      },
      deps,
    );
    const perSecond = settings.redisPerSecond
      ? createInstance(
          {
            type: settings.redisPerSecondType,
            url: settings.redisPerSecondUrl,
            hint: defaultUrlHint(redisSettings.redisPerSecondUrl, settings.redisPerSecondUrl),
            socketType: settings.redisPerSecondSocketType,
            auth: settings.redisPerSecondAuth,
            sentinelAuth: settings.redisPerSecondSentinelAuth,
            tls: tls.current,
            useTls: settings.redisPerSecondTls,
            timeoutMs: settings.redisPerSecondTimeoutMs,
            poolSize: settings.redisPerSecondPoolSize,
            poolOnEmpty: settings.redisPerSecondPoolOnEmpty,
            poolOnEmptyWaitMs: settings.redisPerSecondPoolOnEmptyWaitMs,
            pipelineWindowMs: settings.redisPerSecondPipelineWindowMs,
            retry,
            statsPrefix: statsNames.redisPerSecondPoolPrefix,
            healthName: watched ? 'redis per second' : undefined,
          },
          deps,
        )
      : undefined;
    const startTimeoutMs = settings.redisStartupMaxElapsedMs;
    const backend = createRedisBackend({ main, perSecond, startTimeoutMs, hint });
    return {
      ...backend,
      async close() {
        tls.close();
        await backend.close();
      },
    };
  },
};

function defaultUrlHint({ env, aliases, fallback }: Setting<string>, url: string): string | undefined {
  return url === fallback?.value
    ? `${[...aliases, env].join(' or ')} is not set, and this is its default: set it to the address of Redis`
    : undefined;
}

function createInstance(settings: InstanceSettings, deps: BackendDeps): RedisInstance {
  const parsed = parseRedisTarget(settings.type, settings.url, settings.socketType);
  if (!parsed.ok) {
    throw new TypeError('the address was checked with the settings');
  }
  const { target } = parsed;
  const where = describeRedisTarget(target);
  const open = (address: RedisAddress, auth = settings.auth): Redis =>
    openRedis({
      address,
      credentials: parseRedisAuth(auth),
      tls: settings.useTls || (address.kind === 'tcp' && address.tls === true) ? settings.tls() : undefined,
      connectTimeoutMs: settings.timeoutMs,
    });
  const poolDeps = poolDepsOf(settings, deps, where);
  const options: PooledInstanceOptions = {
    size: settings.poolSize,
    onEmpty: settings.poolOnEmpty,
    onEmptyWaitMs: settings.poolOnEmptyWaitMs,
    timeoutMs: settings.timeoutMs,
    windowMs: settings.pipelineWindowMs,
  };
  switch (target.kind) {
    case 'single':
      return createPooledInstance({ ...poolDeps, open: () => open(target.address) }, options);
    case 'sentinel':
      return createSentinelInstance(
        {
          ...poolDeps,
          openPrimary: open,
          openSentinel: (address) => open(address, settings.sentinelAuth),
          ...sentinelLog(deps.logger, where),
        },
        { ...options, ...target },
      );
    case 'cluster':
      return createClusterInstance(
        {
          ...poolDeps,
          seeds: target.nodes.map(({ host, port }) => nodeAddress(host, port)),
          open: ({ host, port }) => open({ ...sharedByNodes(target.nodes), kind: 'tcp', host, port }),
          ...clusterLog(deps.logger, where),
        },
        options,
      );
  }
}

/** What all kinds of instances report, and how they pause between attempts. */
function poolDepsOf(
  settings: InstanceSettings,
  deps: BackendDeps,
  where: string,
): Omit<ConnectionPoolDeps, 'open'> {
  const health =
    settings.healthName === undefined
      ? undefined
      : deps.health.component(settings.healthName, { healthy: true });
  const logAvailability = availabilityLog(deps.logger, where);
  return {
    figures: poolFigures(settings.statsPrefix, deps),
    startDelayMs: backoffDelays({ ...settings.retry, jitter: 0.5, random: deps.random }),
    reconnectDelayMs: backoffDelays({ ...reconnect, jitter: 0.5, random: deps.random }),
    onAvailable(available) {
      health?.set(available);
      logAvailability(available);
    },
    onError: (error) =>
      deps.logger.warn(
        { redis: where, err: error, ...(settings.hint !== undefined && { hint: settings.hint }) },
        'Redis connection failed',
      ),
  };
}

/** Warns of a change of the primary, and when the sentinels are lost and back; the first primary is no news. */
function sentinelLog(
  logger: Logger,
  redis: string,
): Required<Pick<SentinelInstanceDeps, 'onPrimary' | 'onSentinels'>> {
  let before: string | undefined;
  return {
    onPrimary(address) {
      const primary = describeRedisAddress(address);
      if (before === undefined) logger.info({ redis, primary }, 'the sentinels named the primary');
      else logger.warn({ redis, primary, before }, 'the sentinels name another primary');
      before = primary;
    },
    onSentinels(error) {
      if (error === undefined) logger.warn({ redis }, 'the sentinels name the primary again');
      else logger.warn({ redis, err: error }, 'no sentinel names the primary: a failover would go unnoticed');
    },
  };
}

/** Warns when Redis is lost and when it is back, so that an outage has an end in the log; the first time is no news. */
function availabilityLog(logger: Logger, redis: string): (available: boolean) => void {
  let lost = false;
  return (available) => {
    if (!available) logger.warn({ redis }, 'lost the last connection to Redis');
    else if (lost) logger.warn({ redis }, 'connected to Redis again');
    else logger.info({ redis }, 'connected to Redis');
    lost ||= !available;
  };
}

function poolFigures(prefix: string, { stats }: BackendDeps): PoolFigures {
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
