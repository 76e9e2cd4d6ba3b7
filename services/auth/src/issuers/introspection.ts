import { RecentlyUsed } from '@tollgate/kit/collections';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import { readTextFile } from '@tollgate/kit/text-files';
import { inTime } from '@tollgate/kit/time';
import type { IntrospectionDefinition, IssuerDefinition } from '@tollgate/policies/routes-file/issuer';
import { postForText } from '../outbound/fetch.ts';
import { type Claims, checkClaims, isIssuer, maxTokenChars, tenantProblem } from './verify.ts';

export type Introspected =
  | {
      readonly ok: true;
      readonly claims: Claims;
      /** When the response must be asked for again. */
      readonly expiresAtMs: number;
    }
  | { readonly ok: false; readonly reason: string }
  | { readonly ok: false; readonly unavailable: string };

interface TokenIntrospectionOptions {
  /** Hosts that may have a private address, and be reached without TLS; in lower case. */
  readonly privateHosts: readonly string[];
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly logger: Logger;
}

/** Answers of an issuer about its tokens. */
interface Answers {
  readonly definition: IssuerDefinition;
  /** Tokens that are not active, with the time until they are asked for again. */
  readonly inactive: RecentlyUsed<number>;
  readonly calls: Map<string, Promise<Introspected>>;
}

/** Anyone can send unknown tokens: their number and the time they are remembered are bounded. */
const negative = { capacityChars: 1024 * 1024, ttlMs: 10_000 };
/** Requests beyond get 503: an issuer that hangs must not fill the memory. */
const maxConcurrent = 100;
/** Limit of a call, which other requests with the same token share. */
const timeoutMs = 5_000;
const maxBytes = { response: 64 * 1024, secret: 4 * 1024, ca: 1024 * 1024 };

/**
 * Asks issuers about tokens that are no JWTs. Concurrent requests with a token share a call.
 *
 * @see RFC 7662 https://www.rfc-editor.org/rfc/rfc7662
 */
export class TokenIntrospection {
  readonly #options: TokenIntrospectionOptions;
  readonly #failures: FailureLog;
  /** Undefined until the first token. */
  #answers: Answers | undefined;

  constructor(options: TokenIntrospectionOptions) {
    this.#options = options;
    this.#failures = new FailureLog({
      logger: options.logger,
      message: 'token introspection failed',
      level: 'warn',
    });
  }

  /** Never rejects. */
  async introspect(definition: IssuerDefinition, token: string, waitMs: number): Promise<Introspected> {
    if (token.length > maxTokenChars) return { ok: false, reason: 'token is too long' };
    const nowMs = this.#options.nowMs();
    const answers = this.#answersOf(definition);
    const untilMs = answers.inactive.get(token);
    // A time far ahead means that the clock was set back.
    if (untilMs !== undefined && nowMs < untilMs && untilMs - nowMs <= negative.ttlMs) return inactive;
    const call = answers.calls.get(token) ?? this.#start(answers, token);
    if (call === undefined) return { ok: false, unavailable: 'too many tokens are being checked' };
    try {
      return await inTime(call, waitMs, () => new Error('the issuer did not answer in time'));
    } catch (error) {
      this.#failures.log(error, { issuer: definition.name });
      return { ok: false, unavailable: 'the issuer did not answer about the token' };
    }
  }

  /** Answers of an issuer are not those of the one that replaces it. */
  #answersOf(definition: IssuerDefinition): Answers {
    if (this.#answers?.definition !== definition)
      this.#answers = {
        definition,
        inactive: new RecentlyUsed({ capacity: negative.capacityChars, weigh: (token) => token.length }),
        calls: new Map(),
      };
    return this.#answers;
  }

  #start(answers: Answers, token: string): Promise<Introspected> | undefined {
    const { definition, calls } = answers;
    if (calls.size >= maxConcurrent || definition.introspection === undefined) return undefined;
    const call = this.#call(answers, definition.introspection, token).finally(() => calls.delete(token));
    // Requests may have given up by then.
    call.catch(() => undefined);
    calls.set(token, call);
    return call;
  }

  async #call(
    { definition, inactive: known }: Answers,
    introspection: IntrospectionDefinition,
    token: string,
  ): Promise<Introspected> {
    const { endpoint, clientId, secretFile, cacheMs } = introspection;
    const { privateHosts, nowMs } = this.#options;
    const { caFile } = definition;
    const startedMs = nowMs();
    const secret = (await readTextFile(secretFile, maxBytes.secret)).trim();
    const ca = caFile === undefined ? undefined : await readTextFile(caFile, maxBytes.ca);
    const text = await postForText(new URL(endpoint), {
      body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        authorization: basicAuthorization(clientId, secret),
      },
      ...{ privateHosts, ca, timeoutMs, maxBytes: maxBytes.response },
    });
    const result = readResponse(text, definition, { nowMs: startedMs, cacheMs });
    if (!result.ok) known.set(token, startedMs + negative.ttlMs);
    return result;
  }
}

const inactive = { ok: false, reason: 'token is not active' } as const;

/** @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1 */
function basicAuthorization(clientId: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams({ text }).toString().slice('text='.length);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(secret)}`).toString('base64')}`;
}

/** @throws Error if it is not an introspection response. */
function readResponse(
  text: string,
  definition: IssuerDefinition,
  { nowMs, cacheMs }: { readonly nowMs: number; readonly cacheMs: number },
): Introspected {
  const claims: unknown = JSON.parse(text);
  if (!isObject(claims) || typeof claims.active !== 'boolean')
    throw new Error('the introspection response has no boolean active');
  if (!claims.active) return inactive;
  // `iss` is optional in RFC 7662: the endpoint is that of the issuer.
  if (claims.iss !== undefined && !isIssuer(definition.issuer ?? '', claims))
    return { ok: false, reason: 'iss is not the issuer' };
  const problem = tenantProblem(claims, definition);
  if (problem !== undefined) return { ok: false, reason: problem };
  const untilMs = nowMs + cacheMs;
  // Both are optional, too. Without an audience, the client is who the token is for.
  const { aud = claims.client_id, exp = Number.POSITIVE_INFINITY } = claims;
  const checked = checkClaims({ ...claims, aud, exp }, definition, nowMs);
  if (!checked.ok) return { ok: false, reason: checked.reason };
  return { ok: true, claims, expiresAtMs: Math.min(untilMs, checked.expiresAtMs) };
}

function isObject(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
