import { createHmac, hkdfSync } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { issuerUrl } from '../keys/jwt.ts';

/** A nonce is accepted in its period and the next, and where a clock is behind also before. */
const periodMs = 5 * 60_000;
const nonceChars = 22;

/**
 * Nonces of proofs, which replicas need not share: each is the MAC of a period of time by a key
 * that follows from the secret of tokens.
 *
 * @see RFC 9449 §8 https://www.rfc-editor.org/rfc/rfc9449#section-8
 */
export class DpopNonces {
  readonly #key: Buffer;

  constructor(settings: Pick<Settings, 'jwtSecret' | 'jwtIssuer' | 'apiExternalUrl'>) {
    // The issuer: servers with one secret do not accept each other's.
    const info = `DPoP nonces of ${issuerUrl(settings)}`;
    this.#key = Buffer.from(hkdfSync('sha256', settings.jwtSecret, '', info, 32));
  }

  current(nowMs: number): string {
    return this.#make(Math.floor(nowMs / periodMs));
  }

  isValid(nonce: unknown, nowMs: number): boolean {
    const period = Math.floor(nowMs / periodMs);
    return [period, period - 1, period + 1].some((each) => nonce === this.#make(each));
  }

  #make(period: number): string {
    return createHmac('sha256', this.#key).update(String(period)).digest('base64url').slice(0, nonceChars);
  }
}
