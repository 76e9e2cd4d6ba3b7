import { RecentlyUsed } from '@tollgate/kit/collections';
import type { Millis } from '@tollgate/kit/time';
import type { Bucket } from '../config/quotas.ts';
import type { Settings } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import { errors, RetryLaterError } from '../errors.ts';
import { InstanceBuckets } from './instance-buckets.ts';
import type { LimitedClient } from './limiter.ts';
import { limits } from './table.ts';

/** Clients that cannot be distinguished share it. */
const unknownClient = 'unknown';

/** Limits the wrong API keys of a client, in the memory of each replica. */
export class WrongKeys {
  readonly #buckets = new InstanceBuckets<string>();
  /** Undefined: no limit. */
  readonly #ofClient: Bucket | undefined;
  readonly #shared: Bucket | undefined;

  constructor(settings: Settings) {
    const { rateLimitApiKeys, rateLimitUnknownClients: factor } = settings;
    if (rateLimitApiKeys === 0) return;
    const bucket = limits.unknown_api_key.quota(settings);
    const { size, refillEveryMs } = bucket;
    this.#ofClient = bucket;
    if (factor > 0) this.#shared = { ...bucket, size: size * factor, refillEveryMs: refillEveryMs / factor };
  }

  /** 0 unless the client has sent too many wrong keys. Undefined: the client is unknown. */
  retryAfterMs(client: string | undefined, nowMs: number): Millis {
    const bucket = client === undefined ? this.#shared : this.#ofClient;
    const isFull = bucket !== undefined && this.#buckets.isFull(client ?? unknownClient, bucket, nowMs);
    return isFull ? bucket.refillEveryMs : 0;
  }

  count(client: string | undefined, nowMs: number): void {
    const bucket = client === undefined ? this.#shared : this.#ofClient;
    if (bucket !== undefined) this.#buckets.take(client ?? unknownClient, bucket, nowMs);
  }
}

/** Keys of administrators are few. */
const maxKnownKeys = 1_000;

/**
 * Limits the wrong keys of a client at the admin API, which reads the database for each key.
 * Beyond the limit only keys are read that were right before.
 */
export class AdminKeyLimit {
  readonly #context: Pick<BaseContext, 'metrics' | 'nowMs'>;
  readonly #wrong: WrongKeys;
  /** Keyed by digest. */
  readonly #known = new RecentlyUsed<true>({ capacity: maxKnownKeys });

  constructor(context: Pick<BaseContext, 'settings' | 'metrics' | 'nowMs'>) {
    this.#context = context;
    this.#wrong = new WrongKeys(context.settings);
  }

  /** @throws RetryLaterError `over_request_rate_limit` */
  check(digest: string, { key }: LimitedClient): void {
    const retryAfterMs = this.#wrong.retryAfterMs(key, this.#context.nowMs());
    if (retryAfterMs === 0 || this.#known.get(digest) === true) return;
    this.#context.metrics.refusedRequests.inc({ limiter: 'unknown_api_key', key: 'address' });
    throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(retryAfterMs / 1000));
  }

  recordWrong({ key }: LimitedClient): void {
    this.#wrong.count(key, this.#context.nowMs());
  }

  recordRight(digest: string): void {
    this.#known.set(digest, true);
  }
}
