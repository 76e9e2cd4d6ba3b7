import { Counter, Gauge, type Registry } from 'prom-client';

const loadResults = ['success', 'failure'] as const;
/** `rejected`: the token is invalid. `unavailable`: the issuer did not answer. */
const tokenResults = ['accepted', 'rejected', 'unavailable'] as const;

export type TokenResult = (typeof tokenResults)[number];

/** Metrics of other issuers. Names of issuers are those of the routes file, so they are bounded. */
export class IssuerMetrics {
  readonly #loads: Counter<'issuer' | 'result'>;
  readonly #isCurrent: Gauge<'issuer'>;
  readonly #tokens: Counter<'issuer' | 'result'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#loads = new Counter({
      name: 'auth_issuer_key_loads_total',
      help: 'Attempts to load the keys of other issuers, by issuer and result.',
      labelNames: ['issuer', 'result'],
      registers,
    });
    this.#isCurrent = new Gauge({
      name: 'auth_issuer_keys_current',
      help: 'Whether the last attempt to load the keys of an issuer succeeded (1), or the last ones are in use (0).',
      labelNames: ['issuer'],
      registers,
    });
    this.#tokens = new Counter({
      name: 'auth_issuer_tokens_total',
      help: 'Tokens of other issuers that were verified, without those in the cache, by issuer and result.',
      labelNames: ['issuer', 'result'],
      registers,
    });
  }

  /** Creates the series, which alerts need from the start. */
  add(issuer: string): void {
    for (const result of loadResults) this.#loads.inc({ issuer, result }, 0);
    for (const result of tokenResults) this.#tokens.inc({ issuer, result }, 0);
    // No load has failed yet.
    this.#isCurrent.set({ issuer }, 1);
  }

  remove(issuer: string): void {
    for (const result of loadResults) this.#loads.remove({ issuer, result });
    for (const result of tokenResults) this.#tokens.remove({ issuer, result });
    this.#isCurrent.remove({ issuer });
  }

  recordLoad(issuer: string, succeeded: boolean): void {
    this.#loads.inc({ issuer, result: succeeded ? 'success' : 'failure' });
    this.#isCurrent.set({ issuer }, succeeded ? 1 : 0);
  }

  recordToken(issuer: string, result: TokenResult): void {
    this.#tokens.inc({ issuer, result });
  }
}
