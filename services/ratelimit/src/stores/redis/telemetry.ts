import type { Logger } from '@tollgate/kit/logger';
import type { Context } from '../../context.ts';
import { poolPrefixes, poolStatNames, type StoreName } from '../../metrics/names.ts';
import type { Counter, Gauge } from '../../metrics/registry.ts';
import { StoreStats } from '../../metrics/store-stats.ts';
import type { NodeAddress } from './cluster/slots.ts';
import type { CredentialHooks } from './credentials/login.ts';

/** Statistics of the connections of an instance, and of the exchanges over them. */
export class PoolMetrics {
  readonly exchanges: StoreStats;
  readonly #active: Gauge;
  readonly #total: Counter;
  readonly #closed: Counter;
  readonly #exhausted: Counter;
  readonly #openBreakers: Gauge;
  readonly #rejected: Counter;
  readonly #loginsRenewed: Counter;
  readonly #loginsRefused: Counter;

  constructor(store: Exclude<StoreName, 'memcache'>, stats: Context['stats']) {
    const prefix = poolPrefixes[store];
    this.exchanges = new StoreStats(store, stats);
    this.#active = stats.gauge(`${prefix}${poolStatNames.active}`);
    this.#total = stats.counter(`${prefix}${poolStatNames.total}`);
    this.#closed = stats.counter(`${prefix}${poolStatNames.closed}`);
    this.#exhausted = stats.counter(`${prefix}${poolStatNames.exhausted}`);
    this.#openBreakers = stats.gauge(`${prefix}${poolStatNames.openBreakers}`);
    this.#rejected = stats.counter(`${prefix}${poolStatNames.breakerRejected}`);
    // They exist also while no file or program provides credentials.
    for (const name of ['credentialsReloaded', 'credentialsFailed'] as const)
      stats.counter(`${prefix}${poolStatNames[name]}`);
    this.#loginsRenewed = stats.counter(`${prefix}${poolStatNames.loginRenewed}`);
    this.#loginsRefused = stats.counter(`${prefix}${poolStatNames.loginRefused}`);
  }

  opened(): void {
    this.#active.value += 1;
    this.#total.value += 1;
  }

  closed(): void {
    this.#active.value -= 1;
    this.#closed.value += 1;
  }

  /** All connections were busy for longer than the pool waits for one. */
  exhausted(): void {
    this.#exhausted.value += 1;
  }

  breakerOpened(): void {
    this.#openBreakers.value += 1;
  }

  breakerClosed(): void {
    this.#openBreakers.value -= 1;
  }

  breakerRejected(): void {
    this.#rejected.value += 1;
  }

  loggedIn(isRefused: boolean): void {
    if (isRefused) this.#loginsRefused.value += 1;
    else this.#loginsRenewed.value += 1;
  }
}

/** Counts and logs the credentials of an instance that come from files or a program. */
export class CredentialLog implements CredentialHooks {
  readonly #logger: Logger;
  readonly #fields: { readonly store: string; readonly setting: string };
  readonly #reloaded: Counter;
  readonly #failed: Counter;

  constructor(
    { logger, stats }: Pick<Context, 'logger' | 'stats'>,
    { store, setting }: { readonly store: Exclude<StoreName, 'memcache'>; readonly setting: string },
  ) {
    const prefix = poolPrefixes[store];
    this.#logger = logger;
    this.#fields = { store, setting };
    this.#reloaded = stats.counter(`${prefix}${poolStatNames.credentialsReloaded}`);
    this.#failed = stats.counter(`${prefix}${poolStatNames.credentialsFailed}`);
  }

  readonly onReloaded = (): void => {
    this.#reloaded.value += 1;
    this.#logger.info(this.#fields, 'reloaded the credentials of Redis');
  };

  readonly onError = (err: Error): void => {
    this.#failed.value += 1;
    this.#logger.error(
      { ...this.#fields, err },
      'credentials of Redis not loaded, keeping the last good ones',
    );
  };
}

const breakerOpened = 'circuit breaker opened, requests fail without Redis';
const breakerClosed = 'circuit breaker closed, requests go to Redis again';

/** Logs outages of Redis with their end as warnings; the first connection is an info. */
export class AvailabilityLog {
  readonly #logger: Logger;
  readonly #redis: string;
  #lost: boolean = false;

  constructor(logger: Logger, redis: string) {
    this.#logger = logger;
    this.#redis = redis;
  }

  onAvailable(available: boolean): void {
    const fields = { redis: this.#redis };
    if (!available) this.#logger.warn(fields, 'lost the last connection to Redis');
    else if (this.#lost) this.#logger.warn(fields, 'connected to Redis again');
    else this.#logger.info(fields, 'connected to Redis');
    this.#lost ||= !available;
  }

  onBreakerOpen(err: Error, retryMs: number): void {
    this.#logger.warn({ redis: this.#redis, err, retryMs }, breakerOpened);
  }

  onBreakerClose(): void {
    this.#logger.warn({ redis: this.#redis }, breakerClosed);
  }
}

/** Logs changes of the primary as warnings, and when the sentinels are lost and recover. */
export class SentinelLog {
  readonly #logger: Logger;
  readonly #redis: string;
  #primary: string | undefined;

  constructor(logger: Logger, redis: string) {
    this.#logger = logger;
    this.#redis = redis;
  }

  onPrimary(primary: string): void {
    const before = this.#primary;
    const redis = this.#redis;
    if (before === undefined) this.#logger.info({ redis, primary }, 'sentinels named the primary');
    else this.#logger.warn({ redis, primary, before }, 'sentinels named another primary');
    this.#primary = primary;
  }

  onSentinels(err: Error | undefined): void {
    const redis = this.#redis;
    if (err === undefined) this.#logger.warn({ redis }, 'sentinels name the primary again');
    else this.#logger.warn({ redis, err }, 'no sentinel names the primary, a failover would be missed');
  }
}

/** Logs nodes that join, leave, are lost and recover. */
export class ClusterLog {
  readonly #logger: Logger;
  readonly #redis: string;
  readonly #lost = new Set<string>();
  #nodes: readonly string[] = [];

  /** `redis` names the cluster. */
  constructor(logger: Logger, redis: string) {
    this.#logger = logger;
    this.#redis = redis;
  }

  onNodeAvailable({ name: node }: NodeAddress, available: boolean): void {
    const fields = { redis: this.#redis, node };
    if (!available) {
      this.#lost.add(node);
      this.#logger.warn(fields, 'lost the last connection to a node of the Redis Cluster');
    } else if (this.#lost.delete(node)) {
      this.#logger.warn(fields, 'connected to a node of the Redis Cluster again');
    } else {
      this.#logger.info(fields, 'connected to a node of the Redis Cluster');
    }
  }

  onNodeError({ name: node }: NodeAddress, err: Error): void {
    this.#logger.warn({ redis: this.#redis, node, err }, 'Redis connection failed');
  }

  onNodeBreakerOpen({ name: node }: NodeAddress, err: Error, retryMs: number): void {
    this.#logger.warn({ redis: this.#redis, node, err, retryMs }, breakerOpened);
  }

  onNodeBreakerClose({ name: node }: NodeAddress): void {
    this.#logger.warn({ redis: this.#redis, node }, breakerClosed);
  }

  onNodes(addresses: readonly NodeAddress[]): void {
    const nodes = addresses.map(({ name }) => name).sort();
    const before = this.#nodes;
    if (nodes.join() !== before.join()) {
      // The first nodes are normal; later changes are the end of an outage or the work of an
      // operator.
      const level = before.length === 0 ? 'info' : 'warn';
      this.#logger[level]({ redis: this.#redis, nodes, before }, 'nodes of the Redis Cluster');
    }
    this.#nodes = nodes;
    for (const node of this.#lost) {
      nodes.includes(node) || this.#lost.delete(node);
    }
  }

  onTopologyError(err: Error): void {
    this.#logger.warn({ redis: this.#redis, err }, 'no node of the Redis Cluster returned its slots');
  }
}
