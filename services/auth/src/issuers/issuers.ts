import { isDeepStrictEqual } from 'node:util';
import { RecentlyUsed } from '@tollgate/kit/collections';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { inTime } from '@tollgate/kit/time';
import type { IssuerDefinition } from '@tollgate/policies/routes-file/issuer';
import { keySource, tenantPlaceholder } from './definition.ts';
import type { LoadedKeys } from './discovery.ts';
import type { TokenIntrospection } from './introspection.ts';
import { IssuerKeys, type IssuerKeysOptions } from './issuer-keys.ts';
import { TokenUsage } from './token-usage.ts';
import {
  type Claims,
  type DecodedJwt,
  decodeJwt,
  isIssuer,
  type VerifiedToken,
  verifyToken,
} from './verify.ts';

/** An issuer, and what its verified claims mean. */
export interface TrustedIssuer<T> {
  readonly definition: IssuerDefinition;
  /** Called once per token, not once per request. */
  readonly accept: (claims: Claims) => Accepted<T>;
}

export type Accepted<T> =
  | { readonly ok: true; readonly caller: T }
  | { readonly ok: false; readonly reason: string };

export type TokenVerification<T> =
  | Accepted<T>
  /** The token may be valid, but the issuer did not answer. */
  | { readonly ok: false; readonly unavailable: string };

export type VerifiedAssertion =
  /** `issuer` is the name of the issuer in the configuration. */
  | { readonly ok: true; readonly issuer: string; readonly claims: Claims }
  | { readonly ok: false; readonly reason: string }
  | { readonly ok: false; readonly unavailable: string };

export interface IssuersOptions extends IssuerKeysOptions {
  readonly introspection: Pick<TokenIntrospection, 'introspect'>;
}

interface Trust<T> extends TrustedIssuer<T> {
  readonly keys: IssuerKeys;
  readonly usage: TokenUsage;
}

/** Keys and tokens of an issuer since this process trusts it. */
export type IssuerState = Pick<Trust<unknown>, 'keys' | 'usage'>;

/** A verified token. Valid for as long as its issuer has the same keys. */
interface Entry<T> {
  readonly trust: Trust<T>;
  readonly loaded: LoadedKeys | undefined;
  readonly caller: T;
  readonly expiresAtMs: number;
}

/** Tokens usually have fewer than 2,000 characters, so this holds about 5,000 and their callers. */
const capacityChars = 16 * 1024 * 1024;
/** Headers, metadata and claims of a caller, which a short token has, too. */
const callerChars = 2_000;
/** No request waits longer for an issuer, even if the timeout of the gateway is longer. */
const maxWaitMs = 2_000;
/** Share of the gateway's timeout that a request waits; the rest is for the response. */
const timeoutShare = 0.8;

/** Verifies tokens of other issuers, each signature once. */
export class Issuers<T> implements LifecycleComponent {
  readonly name = 'token issuers';
  readonly #options: IssuersOptions;
  readonly #verified = new RecentlyUsed<Entry<T>>({
    capacity: capacityChars,
    weigh: (token) => token.length + callerChars,
  });
  #trusted: readonly Trust<T>[] = [];
  #byIssuer: ReadonlyMap<string, Trust<T>> = new Map();
  #isStarted = false;

  constructor(options: IssuersOptions) {
    this.#options = options;
  }

  /** Replaces the issuers. Keys are kept if they would be loaded the same way. */
  replace(issuers: readonly TrustedIssuer<T>[]): void {
    const previous = this.#trusted;
    const kept = new Set<IssuerKeys>();
    const reused = issuers.map(({ definition }): IssuerState | undefined => {
      const source = keySource(definition);
      const same = previous.find(({ keys }) => isDeepStrictEqual(keys.source, source));
      if (same !== undefined) kept.add(same.keys);
      return same;
    });
    for (const { keys } of previous) if (!kept.has(keys)) keys.close();
    this.#trusted = issuers.map((issuer, index) => {
      const { keys, usage } = reused[index] ?? this.#create(issuer.definition);
      return { ...issuer, keys, usage };
    });
    const named = this.#trusted.flatMap((trust): [string, Trust<T>][] =>
      trust.definition.issuer === undefined ? [] : [[trust.definition.issuer, trust]],
    );
    this.#byIssuer = new Map(named);
    // The mapping of claims may have changed, too.
    this.#verified.clear();
  }

  start(): void {
    this.#isStarted = true;
    for (const { keys } of this.#trusted) keys.start();
  }

  stop(): void {
    for (const { keys } of this.#trusted) keys.close();
    this.#trusted = [];
    this.#byIssuer = new Map();
  }

  /** Whether any other issuer is trusted. */
  get isEmpty(): boolean {
    return this.#trusted.length === 0;
  }

  /** The issuer with a name of the configuration. */
  find(name: string): IssuerState | undefined {
    return this.#trusted.find(({ definition }) => definition.name === name);
  }

  /** The caller of a token that was verified before, unless it has expired. */
  recall(token: string, nowMs: number): T | undefined {
    const entry = this.#verified.get(token);
    if (entry === undefined || nowMs >= entry.expiresAtMs) return undefined;
    if (entry.loaded !== entry.trust.keys.current) return undefined;
    entry.trust.usage.recordUse(nowMs);
    return entry.caller;
  }

  /**
   * Verifies a token. Undefined if no other issuer can have issued it. A promise only if the result
   * depends on an answer of the issuer, for which it waits at most most of `timeoutMs`. `isOwn` is
   * asked about a token that names none of the issuers.
   */
  verify(
    token: string,
    timeoutMs: number,
    isOwn: () => boolean = () => false,
  ): TokenVerification<T> | Promise<TokenVerification<T>> | undefined {
    const waitMs = Math.min(maxWaitMs, timeoutMs * timeoutShare);
    const jwt = decodeJwt(token);
    if (jwt === undefined) return this.#introspect(token, waitMs);
    const trust = this.#findByClaims(jwt.claims);
    if (trust !== undefined) return this.#verifyFor(trust, { token, jwt, waitMs });
    const unknown = this.#trusted.find(({ definition, keys }) => !definition.issuer && !keys.current);
    // The token may be of a cluster whose issuer is not known yet.
    return unknown === undefined || isOwn() ? undefined : this.#verifyLater(unknown, { token, jwt, waitMs });
  }

  /**
   * Verifies an assertion, which is a token for this server instead of an API behind the gateway.
   * It is for no other audience, which could present it here.
   */
  async verifyAssertion(assertion: string, audiences: readonly string[]): Promise<VerifiedAssertion> {
    const jwt = decodeJwt(assertion);
    if (jwt === undefined) return { ok: false, reason: 'it is no JWT' };
    if (this.#findByClaims(jwt.claims) === undefined)
      for (const { definition, keys } of this.#trusted)
        if (definition.issuer === undefined && keys.current === undefined)
          await this.#waitFor(keys.loadUnknown(), maxWaitMs);
    const trust = this.#findByClaims(jwt.claims);
    if (trust === undefined) return { ok: false, reason: 'iss is not a trusted issuer' };
    const { definition, keys } = trust;
    if (!isOneTenant(definition)) return { ok: false, reason: 'its issuer has several tenants' };
    if (![jwt.claims.aud].flat().every((name) => audiences.includes(String(name))))
      return { ok: false, reason: 'aud is not only this server' };
    const verify = (): VerifiedToken | undefined => {
      const loaded = keys.current;
      const expected = { definition: { ...definition, audiences }, nowMs: this.#options.nowMs() };
      return loaded && verifyToken(jwt, { ...expected, issuer: loaded.issuer, keys: loaded.keys });
    };
    let verified = verify();
    if (verified === undefined || (!verified.ok && verified.isKeyUnknown)) {
      await this.#waitFor(keys.loadUnknown(), maxWaitMs);
      verified = verify();
    }
    if (verified?.ok) return { ok: true, issuer: definition.name, claims: verified.claims };
    if (verified === undefined || (verified.isKeyUnknown && keys.isDown))
      return { ok: false, unavailable: 'the issuer cannot be reached, and the key is not known' };
    return { ok: false, reason: verified.reason };
  }

  #create(definition: IssuerDefinition): IssuerState {
    const keys = new IssuerKeys(keySource(definition), this.#options);
    this.#options.metrics?.add(definition.name);
    if (this.#isStarted) keys.start();
    return { keys, usage: new TokenUsage() };
  }

  #findByClaims(claims: Claims): Trust<T> | undefined {
    const { iss } = claims;
    if (typeof iss !== 'string') return undefined;
    const exact = this.#byIssuer.get(iss);
    if (exact !== undefined) return exact;
    return this.#trusted.find(({ definition, keys }) => {
      const issuer = definition.issuer ?? keys.current?.issuer;
      return issuer !== undefined && isIssuer(issuer, claims);
    });
  }

  #verifyFor(trust: Trust<T>, check: Check): TokenVerification<T> | Promise<TokenVerification<T>> {
    const { current } = trust.keys;
    const verified = current && this.#verifyWith(trust, current, check);
    if (verified !== undefined && (verified.ok || !verified.isKeyUnknown))
      return this.#record(trust, verified);
    const loading = trust.keys.loadUnknown();
    if (loading !== undefined) return this.#afterLoading(trust, loading, check);
    return this.#record(trust, this.#withoutKey(trust, verified));
  }

  async #verifyLater(trust: Trust<T>, check: Check): Promise<TokenVerification<T>> {
    const startedMs = performance.now();
    await this.#waitFor(trust.keys.loadUnknown(), check.waitMs);
    const waitMs = Math.max(0, check.waitMs - (performance.now() - startedMs));
    const found = this.#findByClaims(check.jwt.claims);
    if (found !== undefined) return this.#verifyFor(found, { ...check, waitMs });
    const { name } = trust.definition;
    if (trust.keys.current === undefined)
      return this.#record(trust, { ok: false, unavailable: `the issuer ${name} is not known yet` });
    return { ok: false, reason: 'iss is not an accepted issuer' };
  }

  async #afterLoading(trust: Trust<T>, loading: Promise<void>, check: Check): Promise<TokenVerification<T>> {
    const isLoaded = await this.#waitFor(loading, check.waitMs);
    const { current } = trust.keys;
    const verified = current && this.#verifyWith(trust, current, check);
    if (verified !== undefined && (verified.ok || !verified.isKeyUnknown))
      return this.#record(trust, verified);
    if (!isLoaded)
      return this.#record(trust, { ok: false, unavailable: 'the issuer did not answer in time' });
    return this.#record(trust, this.#withoutKey(trust, verified));
  }

  /** Whether the promise was settled in time. */
  async #waitFor(loading: Promise<void> | undefined, waitMs: number): Promise<boolean> {
    if (loading === undefined) return true;
    try {
      await inTime(loading, waitMs, () => new Error('too late'));
      return true;
    } catch {
      return false;
    }
  }

  /** Unless the issuer says so, a token with an unknown key is not known to be invalid. */
  #withoutKey(trust: Trust<T>, verified: Rejected | undefined): TokenVerification<T> {
    if (verified === undefined || trust.keys.isDown)
      return {
        ok: false,
        unavailable: 'the issuer cannot be reached, and the key of the token is not known',
      };
    return { ok: false, reason: verified.reason };
  }

  #verifyWith(
    trust: Trust<T>,
    loaded: LoadedKeys,
    { token, jwt }: Check,
  ): (Accepted<T> & { readonly ok: true }) | Rejected {
    const { issuer, keys } = loaded;
    const { definition } = trust;
    const verified = verifyToken(jwt, { definition, issuer, keys, nowMs: this.#options.nowMs() });
    if (!verified.ok) return verified;
    const accepted = trust.accept(verified.claims);
    if (!accepted.ok) return { ...accepted, isKeyUnknown: false };
    const { expiresAtMs } = verified;
    this.#remember(token, { trust, loaded, caller: accepted.caller, expiresAtMs });
    return accepted;
  }

  /** The issuers may have been replaced while an answer was awaited. */
  #remember(token: string, entry: Entry<T>): void {
    if (this.#trusted.includes(entry.trust)) this.#verified.set(token, entry);
  }

  #introspect(token: string, waitMs: number): Promise<TokenVerification<T>> | undefined {
    const trust = this.#trusted.find(({ definition }) => definition.introspection !== undefined);
    return trust && this.#introspectAt(trust, token, waitMs);
  }

  async #introspectAt(trust: Trust<T>, token: string, waitMs: number): Promise<TokenVerification<T>> {
    const response = await this.#options.introspection.introspect(trust.definition, token, waitMs);
    if (!response.ok) return this.#record(trust, response);
    const accepted = trust.accept(response.claims);
    if (accepted.ok) {
      const { expiresAtMs } = response;
      const loaded = trust.keys.current;
      this.#remember(token, { trust, loaded, caller: accepted.caller, expiresAtMs });
    }
    return this.#record(trust, accepted);
  }

  #record(trust: Trust<T>, result: TokenVerification<T>): TokenVerification<T> {
    const label = result.ok ? 'accepted' : 'unavailable' in result ? 'unavailable' : 'rejected';
    this.#options.metrics?.recordToken(trust.definition.name, label);
    trust.usage.recordToken(label);
    if (result.ok) trust.usage.recordUse(this.#options.nowMs());
    return result;
  }
}

/** Subjects of several tenants may be the same. */
function isOneTenant({ issuer, tenants }: IssuerDefinition): boolean {
  return issuer?.includes(tenantPlaceholder) !== true || tenants?.length === 1;
}

interface Rejected {
  readonly ok: false;
  readonly reason: string;
  readonly isKeyUnknown: boolean;
}

/** A token that is verified. */
interface Check {
  readonly token: string;
  readonly jwt: DecodedJwt;
  readonly waitMs: number;
}
