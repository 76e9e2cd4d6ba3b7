import { backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { poolStatNames, statsNames } from '../../stats/stats-names.ts';
import type { BackendDeps, BackendModule } from '../backend-module.ts';
import type { PoolFigures } from './connection-pool.ts';
import { createPooledInstance } from './pooled-instance.ts';
import { parseRedisAuth } from './redis-address.ts';
import { createRedisBackend } from './redis-backend.ts';
import { openRedis, type RedisTls } from './redis-connection.ts';
import type { RedisInstance } from './redis-instance.ts';
import { describeRedisTarget, parseRedisTarget, type RedisTarget } from './redis-target.ts';
import { readRedisTls } from './redis-tls.ts';

/**
 * Pauses between attempts to connect again. The first is short, because most losses are a stall or a failover of
 * moments; the last bounds how much later than Redis the service is back.
 */
const reconnect = { initialMs: 50, maxMs: 5_000 };

/** Settings of one of the two instances. */
interface InstanceSettings {
  readonly type: RedisTarget['kind'];
  readonly url: string;
  readonly socketType: string;
  readonly auth: string;
  /** For the sentinels; those without a password have none. */
  readonly sentinelAuth: string;
  readonly tls: RedisTls;
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
    const tls = await readRedisTls(settings);
    const retry = {
      initialMs: settings.redisStartupInitialIntervalMs,
      maxMs: settings.redisStartupMaxIntervalMs,
    };
    const watched = settings.redisHealthCheckActiveConnection;
    const main = createInstance(
      {
        type: settings.redisType,
        url: settings.redisUrl,
        socketType: settings.redisSocketType,
        auth: settings.redisAuth,
        sentinelAuth: settings.redisSentinelAuth,
        tls,
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
            socketType: settings.redisPerSecondSocketType,
            auth: settings.redisPerSecondAuth,
            sentinelAuth: settings.redisPerSecondSentinelAuth,
            tls,
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
    return createRedisBackend({ main, perSecond, startTimeoutMs: settings.redisStartupMaxElapsedMs });
  },
};

function createInstance(settings: InstanceSettings, deps: BackendDeps): RedisInstance {
  const parsed = parseRedisTarget(settings.type, settings.url, settings.socketType);
  if (!parsed.ok) {
    throw new TypeError('the address was checked with the settings');
  }
  const { target } = parsed;
  if (target.kind !== 'single') {
    throw new TypeError(`KVSTORE_TYPE=${target.kind} is not served yet`);
  }
  const { address } = target;
  const figures = poolFigures(settings.statsPrefix, deps);
  const health =
    settings.healthName === undefined
      ? undefined
      : deps.health.component(settings.healthName, { healthy: true });
  const where = describeRedisTarget(target);
  const wantsTls = settings.useTls || (address.kind === 'tcp' && address.tls === true);
  const logAvailability = availabilityLog(deps.logger, where);
  return createPooledInstance(
    {
      open: () =>
        openRedis({
          address,
          credentials: parseRedisAuth(settings.auth),
          tls: wantsTls ? settings.tls : undefined,
          connectTimeoutMs: settings.timeoutMs,
        }),
      figures,
      startDelayMs: backoffDelays({ ...settings.retry, jitter: 0.5, random: deps.random }),
      reconnectDelayMs: backoffDelays({ ...reconnect, jitter: 0.5, random: deps.random }),
      onAvailable(available) {
        health?.set(available);
        logAvailability(available);
      },
      onError: (error) => deps.logger.warn({ redis: where, err: error }, 'Redis connection failed'),
    },
    {
      size: settings.poolSize,
      onEmpty: settings.poolOnEmpty,
      onEmptyWaitMs: settings.poolOnEmptyWaitMs,
      timeoutMs: settings.timeoutMs,
      windowMs: settings.pipelineWindowMs,
    },
  );
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
  return {
    opened() {
      active.value += 1;
      total.value += 1;
    },
    closed() {
      active.value -= 1;
      closed.value += 1;
    },
  };
}
