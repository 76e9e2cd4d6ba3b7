import type { TokenResult } from './metrics.ts';

/** Tokens of an issuer since this process trusts it. */
export class TokenUsage {
  /** Tokens that were verified, without those in the cache. */
  readonly tokens: Record<TokenResult, number> = { accepted: 0, rejected: 0, unavailable: 0 };
  #lastUsedMs: number | undefined;

  /** When a token was accepted last, also from the cache. */
  get lastUsedMs(): number | undefined {
    return this.#lastUsedMs;
  }

  recordToken(result: TokenResult): void {
    this.tokens[result] += 1;
  }

  recordUse(nowMs: number): void {
    this.#lastUsedMs = nowMs;
  }
}
