import { randomUUID } from 'node:crypto';
import { type Redis, redisCommand } from '@tollgate/testkit/redis';
import { domain } from './envoy-config.ts';
import { lostAfterMs, type Outcome, type Writer } from './ledger.ts';

const sum = `local n = 0 for _, key in ipairs(redis.call('keys', ARGV[1])) do n = n + redis.call('get', key) end return n`;

/** Hits of a tenant, which a limiter counts in Redis. */
export class TenantWriter implements Writer {
  readonly #limiterUrl: string;
  readonly #redis: () => Pick<Redis, 'host' | 'port'>;
  readonly #tenant = randomUUID();
  #acknowledged = 0;
  #sent = 0;

  /** `redis` passes proxies by. */
  constructor(limiterUrl: string, redis: () => Pick<Redis, 'host' | 'port'>) {
    this.#limiterUrl = limiterUrl;
    this.#redis = redis;
  }

  async write(): Promise<Outcome> {
    this.#sent += 1;
    try {
      const response = await fetch(`${this.#limiterUrl}/json`, {
        method: 'POST',
        body: JSON.stringify({
          domain,
          descriptors: [{ entries: [{ key: 'tenant', value: this.#tenant }] }],
        }),
        signal: AbortSignal.timeout(lostAfterMs),
      });
      await response.text();
      // `/json` answers 400 when Redis fails, as envoyproxy/ratelimit does.
      if (response.status !== 200) return 'refused';
      this.#acknowledged += 1;
      return 'acknowledged';
    } catch {
      return 'unknown';
    }
  }

  async findLosses(): Promise<readonly string[]> {
    const counted = Number(await redisCommand(this.#redis(), 'EVAL', sum, '0', `*${this.#tenant}*`));
    const isRight = counted >= this.#acknowledged && counted <= this.#sent;
    return isRight ? [] : [`${counted} hits, of ${this.#acknowledged} acknowledged and ${this.#sent} sent`];
  }
}
