import type { JsonObject } from '@tollgate/kit/json';
import type { Logger } from '@tollgate/kit/logger';
import type { Tracing } from '@tollgate/kit/telemetry';
import { isUuid } from '@tollgate/kit/text';
import { type CallerIdentity, ownIssuer } from '@tollgate/policies/decide/caller';
import { type LimitOverride, parseLimitOverride } from '@tollgate/policies/decide/limit-override';
import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import { readAccessCookie } from '../browser-sessions/cookies.ts';
import type { BrowserSessionCache, BrowserSessionState } from '../browser-sessions/store.ts';
import type { Settings } from '../config/settings.ts';
import type { Usage } from '../db/usage.ts';
import { errors } from '../errors.ts';
import type { Issuers, TokenVerification } from '../issuers/issuers.ts';
import { findBindingProblem, keyOfToken } from '../keys/bound-tokens.ts';
import { clientOfToken } from '../keys/client-tokens.ts';
import { findForeignClaim, type JwtClaims, type TokenCache } from '../keys/jwt.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { readAssurance } from '../sessions/assurance.ts';
import { mayBeCrossSite } from './browser-request.ts';
import type { Caller, Token } from './caller.ts';
import { claimAudiences, claimText, maxScopeChars } from './claim-text.ts';
import { parsePlan, readAdded, readAttribute, readPlan, type StoredValues } from './claim-values.ts';
import { clientIdentity, findClientProblem } from './client-identity.ts';
import type { ClientState } from './client-state.ts';
import { findSessionEnd, parseBearer, signInFirst, toSessionToken } from './credentials.ts';
import { forbidden, invalidToken, noToken, unavailable } from './denials.ts';
import type { IdentityCache, IdentityState } from './identity-cache.ts';
import { KnownCaller } from './identity-headers.ts';
import { type Credentials, type KeyContext, KeyIdentifier } from './key-identifier.ts';
import { readInTime } from './read-in-time.ts';
import type { AuthzDenied } from './result.ts';
import { claimedValues, findStateProblem } from './token-state.ts';

/** Parts that ext_authz shares with the API, and its own caches. */
export interface AuthzContext {
  readonly tokens: Pick<TokenCache, 'verify' | 'recall' | 'isSigned'>;
  readonly keys: SigningKeys;
  /** Undefined: only own tokens are accepted. */
  readonly issuers: Pick<Issuers<KnownCaller>, 'isEmpty' | 'recall' | 'verify'> | undefined;
  /** Undefined: tokens are trusted until they expire. */
  readonly identities: Pick<IdentityCache, 'find'> | undefined;
  /** Undefined as `identities`. */
  readonly clients: Pick<IdentityCache<ClientState>, 'find'> | undefined;
  /** Undefined: API keys are not accepted. */
  readonly apiKeys: KeyContext | undefined;
  /** Undefined: cookies are not accepted. */
  readonly browserSessions: Pick<BrowserSessionCache, 'recall' | 'find'> | undefined;
  /** Undefined: sessions do not end by inactivity. */
  readonly browserUsage: Pick<Usage, 'record'> | undefined;
  /** Undefined if tracing is off. */
  readonly tracing: Pick<Tracing, 'activeSpan'> | undefined;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly logger: Logger;
  readonly settings: Pick<
    Settings,
    | 'extAuthzDefaultPlan'
    | 'organizationsEnabled'
    | 'jwtAdminRoles'
    | 'sessionTimeboxMs'
    | 'sessionInactivityTimeoutMs'
    | 'sessionAllowLowAalMs'
    | 'sessionSinglePerUser'
    | 'jwtIssuer'
    | 'jwtIssuerRequired'
    | 'jwtAud'
    | 'jwtAudienceRequired'
    | 'jwtAudiences'
    | 'jwtSecret'
    | 'extAuthzCookieDomain'
    | 'apiExternalUrl'
  >;
}

/** A caller, and the values that it was created from. */
interface CreatedCaller {
  readonly stored: StoredValues | ClientState | undefined;
  readonly mapping: ClaimMapping;
  readonly caller: Caller;
}

type ParsedToken =
  | { readonly ok: true; readonly token: Token }
  | { readonly ok: false; readonly denial: AuthzDenied };

/** Users whose invalid limit has been logged. The oldest is forgotten, and logged again. */
const maxLoggedUsers = 10_000;
/** Interval between log lines about the same outage. */
const logIntervalMs = 10_000;

/** Identifies the caller of a request by its token or API key. */
export class CallerIdentifier {
  readonly #context: AuthzContext;
  readonly #loggedUsers = new Set<string>();
  /** Keyed by claims, which are one object for as long as their token is cached. */
  readonly #callers = new WeakMap<JwtClaims, CreatedCaller>();
  readonly #keys: KeyIdentifier | undefined;
  readonly #isVerified: (token: string) => boolean;
  #quietUntilMs = Number.NEGATIVE_INFINITY;

  constructor(context: AuthzContext) {
    this.#context = context;
    this.#isVerified = (token) => context.tokens.recall(token, context.keys) !== undefined;
    this.#keys =
      context.apiKeys &&
      new KeyIdentifier(context.apiKeys, {
        readLimit: (userId, appMetadata) => this.#parseLimit(userId, appMetadata),
        onFailure: (error) => this.#unavailable(error),
      });
  }

  /**
   * Returns a promise only if the state of the user must be read from the database, or depends on
   * an answer of another issuer.
   */
  identify(
    request: Credentials,
    mapping: ClaimMapping,
    { timeoutMs = Number.POSITIVE_INFINITY, isForBrowsers = false }: IdentifyOptions = {},
  ): Caller | Promise<Caller> {
    const bearer = parseBearer(request.authorization, this.#isVerified);
    const byKey = this.#keys?.identify(request, bearer, { mapping, timeoutMs });
    if (byKey !== undefined) return byKey;
    if (bearer === undefined)
      return isForBrowsers
        ? this.#identifyBrowser(request, mapping, timeoutMs)
        : { ok: false, denial: noToken() };
    if ('reason' in bearer) {
      // One of the values may be a key, which must not reach the upstream of a public route.
      const denied = badJwt(bearer.reason);
      return this.#keys === undefined ? denied : { ...denied, credentials: this.#keys.credentials };
    }
    const foreign = this.#identifyForeign(bearer.token, timeoutMs);
    if (foreign !== undefined) return foreign;
    const parsed = this.#parseToken(bearer.token, mapping);
    if (!parsed.ok) return parsed;
    const { token } = parsed;
    if (token.clientId !== undefined) return this.#identifyClient(token, token.clientId, timeoutMs);
    return this.#identifyUser(token, timeoutMs);
  }

  #identifyUser(token: Token, timeoutMs: number): Caller | Promise<Caller> {
    const { identities, tracing } = this.#context;
    const { userId, sessionId, orgId } = token;
    if (identities === undefined || userId === undefined) return this.#toCaller(token, undefined);
    try {
      const state = identities.find(userId, sessionId, orgId);
      const isCached = !(state instanceof Promise);
      tracing?.activeSpan()?.setAttribute('tollgate.authz.cache_hit', isCached);
      if (isCached) return this.#checkState(token, state);
      return this.#awaitState(state, (known) => this.#checkState(token, known), timeoutMs);
    } catch (error) {
      return this.#unavailable(error);
    }
  }

  /** The caller by the cookie of a browser. */
  #identifyBrowser(request: Credentials, mapping: ClaimMapping, timeoutMs: number): Caller | Promise<Caller> {
    const { browserSessions, settings } = this.#context;
    const cookie = readAccessCookie(request.headers.cookie ?? '', settings);
    if (cookie === undefined || browserSessions === undefined) return signInFirst(noToken());
    if (mayBeCrossSite(request, settings)) return { ok: false, denial: forbidden('cross_site_request') };
    const identify = (state: BrowserSessionState | undefined): Caller | Promise<Caller> => {
      const ended = findSessionEnd(state, request.host, { settings, nowMs: this.#context.nowMs() });
      if (state === undefined || ended !== undefined)
        return signInFirst(invalidToken(ended ?? 'session_not_found'));
      const orgId = settings.organizationsEnabled ? state.orgId : undefined;
      const caller = this.#identifyUser({ ...toSessionToken(state, mapping), orgId }, timeoutMs);
      return caller instanceof Promise
        ? caller.then((known) => this.#finishBrowser(state, known))
        : this.#finishBrowser(state, caller);
    };
    const known = browserSessions.recall(cookie);
    if (known !== undefined) return identify(known === 'unknown' ? undefined : known);
    return this.#awaitState(browserSessions.find(cookie), identify, timeoutMs);
  }

  #finishBrowser({ id }: BrowserSessionState, caller: Caller): Caller {
    if (caller.ok) this.#context.browserUsage?.record(id, this.#context.nowMs());
    // A user who was banned cannot sign in.
    return caller.ok || caller.denial.httpStatus !== 401 ? caller : signInFirst(caller.denial);
  }

  #identifyClient(token: Token, clientId: string, timeoutMs: number): Caller | Promise<Caller> {
    const { clients } = this.#context;
    if (clients === undefined) return this.#toClient(token, clientId, undefined);
    const check = (state: ClientState | undefined): Caller => {
      if (state === undefined) return { ok: false, denial: invalidToken('oauth_client_not_found') };
      const problem = findClientProblem(state, token.claims, this.#context.settings);
      return problem === undefined ? this.#toClient(token, clientId, state) : badJwt(problem);
    };
    const state = clients.find(clientId, undefined);
    return state instanceof Promise ? this.#awaitState(state, check, timeoutMs) : check(state);
  }

  /** Undefined if no other issuer can have issued the token. */
  #identifyForeign(token: string, timeoutMs: number): Caller | Promise<Caller> | undefined {
    const { issuers, tokens, keys, nowMs } = this.#context;
    if (issuers === undefined || issuers.isEmpty) return undefined;
    const known = issuers.recall(token, nowMs());
    if (known !== undefined) return known;
    // Own tokens that are cached are not decoded again.
    if (tokens.recall(token, keys) !== undefined) return undefined;
    const result = issuers.verify(token, timeoutMs, () => tokens.isSigned(token, keys));
    return result instanceof Promise ? result.then(toForeignCaller) : result && toForeignCaller(result);
  }

  #parseToken(bearer: string, mapping: ClaimMapping): ParsedToken {
    const { tokens, keys, settings, nowMs } = this.#context;
    const verified = tokens.verify(bearer, keys, nowMs());
    if (!verified.ok) return badJwt(verified.reason);
    const { claims } = verified;
    const problem = findForeignClaim(claims, settings) ?? findBindingProblem(claims);
    if (problem !== undefined) return badJwt(problem);
    // Only administrators may have tokens that do not expire.
    if (claims.exp === undefined && !settings.jwtAdminRoles.includes(String(claims.role)))
      return badJwt('token has no exp claim');
    const subject = parseUuidClaim(claims.sub);
    const sessionId = parseUuidClaim(claims.session_id);
    if (subject === null) return badJwt('sub claim must be a UUID');
    const isClient = clientOfToken(claims) !== undefined;
    const [userId, clientId] = isClient ? [undefined, subject] : [subject, undefined];
    if (sessionId === null) return badJwt('session_id claim must be a UUID');
    const orgId = settings.organizationsEnabled ? parseUuidClaim(claims.org_id) : undefined;
    if (orgId === null) return badJwt('org_id claim must be a UUID');
    if (sessionId !== undefined && userId === undefined) return badJwt('missing sub claim');
    return { ok: true, token: { userId, sessionId, clientId, orgId, claims, mapping } };
  }

  async #awaitState<State>(
    reading: Promise<State>,
    check: (state: State) => Caller | Promise<Caller>,
    timeoutMs: number,
  ): Promise<Caller> {
    try {
      return await check(await readInTime(reading, timeoutMs));
    } catch (error) {
      return this.#unavailable(error);
    }
  }

  #checkState(token: Token, state: IdentityState | undefined): Caller {
    const { settings, nowMs } = this.#context;
    const problem = findStateProblem(state, token, { limits: settings, nowMs: nowMs() });
    if (problem === 'user_banned') return { ok: false, denial: forbidden(problem) };
    if (problem !== undefined) return { ok: false, denial: invalidToken(problem) };
    return this.#toCaller(token, state);
  }

  #toCaller(token: Token, stored: StoredValues | undefined): Caller {
    return this.#recall(token, stored) ?? this.#keep(token, stored, this.#createIdentity(token, stored));
  }

  #toClient(token: Token, clientId: string, state: ClientState | undefined): Caller {
    const known = this.#recall(token, state);
    if (known !== undefined) return known;
    const { claims, mapping } = token;
    const { extAuthzDefaultPlan } = this.#context.settings;
    const identity = clientIdentity({ clientId, claims, mapping }, state, extAuthzDefaultPlan);
    return this.#keep(token, state, identity);
  }

  /** The caller of a token is created once for each state of the user or client. */
  #recall({ claims, mapping }: Token, stored: CreatedCaller['stored']): Caller | undefined {
    const known = this.#callers.get(claims);
    return known?.stored === stored && known?.mapping === mapping ? known?.caller : undefined;
  }

  #keep({ claims, mapping }: Token, stored: CreatedCaller['stored'], identity: CallerIdentity): Caller {
    const caller = new KnownCaller(identity, [], keyOfToken(claims));
    this.#callers.set(claims, { stored, mapping, caller });
    return caller;
  }

  /**
   * Tokens without a user belong to services of an administrator. Other tokens without a user,
   * such as a public key of a web page, identify no caller and are treated as anonymous.
   */
  #createIdentity(token: Token, stored: StoredValues | undefined): CallerIdentity {
    const { userId, sessionId, claims, mapping } = token;
    const { settings } = this.#context;
    const { role, appMetadata, isAnonymous, organization } = stored ?? claimedValues(token);
    const isService = userId === undefined && settings.jwtAdminRoles.includes(role);
    const values = { claims, stored, hasOrganizations: settings.organizationsEnabled };
    const read = (name: Parameters<typeof readAttribute>[1]) => readAttribute(mapping, name, values);
    const storedPlan = parsePlan(appMetadata) ?? organization?.plan;
    // The claims of a former member must not count.
    const readOrg = (name: 'org_id' | 'org_role') =>
      settings.organizationsEnabled && !mapping.attributes.get(name)?.fromToken ? undefined : read(name);
    return {
      kind: userId === undefined ? (isService ? 'client' : undefined) : 'user',
      userId,
      sessionId,
      key: undefined,
      clientId: read('client_id') ?? (sessionId && claimText(claims.client_id)),
      orgId: readOrg('org_id') ?? organization?.id,
      orgRole: readOrg('org_role') ?? organization?.role,
      role,
      plan: readPlan(mapping, values, storedPlan) ?? settings.extAuthzDefaultPlan,
      scope: read('scope') ?? (sessionId && claimText(claims.scope, maxScopeChars)),
      audiences: claimAudiences(claims),
      aal: readAssurance(claims),
      isAnonymous: isAnonymous || (userId === undefined && !isService),
      issuer: ownIssuer,
      claims: readAdded(mapping, values),
      limit: this.#parseLimit(userId, appMetadata),
      orgLimit: readOrganizationLimit(organization),
    };
  }

  #parseLimit(userId = '', appMetadata: JsonObject): LimitOverride | undefined {
    const parsed = parseUserLimit(appMetadata);
    if (parsed.ok) return parsed.limit;
    if (!this.#loggedUsers.has(userId)) {
      const [oldest] = this.#loggedUsers.size < maxLoggedUsers ? [] : this.#loggedUsers;
      if (oldest !== undefined) this.#loggedUsers.delete(oldest);
      this.#loggedUsers.add(userId);
      this.#context.logger.warn({ user_id: userId, reason: parsed.reason }, 'ignored limit in app_metadata');
    }
    return undefined;
  }

  #unavailable(error: unknown): Caller {
    const { logger, nowMs } = this.#context;
    // During an outage every request fails the same way.
    if (nowMs() >= this.#quietUntilMs) {
      this.#quietUntilMs = nowMs() + logIntervalMs;
      logger.error({ err: error }, 'failed to read the state of users, denying their requests');
    }
    return { ok: false, denial: unavailable() };
  }
}

interface IdentifyOptions {
  readonly timeoutMs?: number | undefined;
  /** Whether cookies of browsers identify a caller, too. Default no. */
  readonly isForBrowsers?: boolean;
}

/** Undefined if absent or empty, as in tokens of administrators; null if it is not a UUID. */
function parseUuidClaim(claim: unknown): string | undefined | null {
  if (claim === undefined || claim === null || claim === '') return undefined;
  return typeof claim === 'string' && isUuid(claim) ? claim.toLowerCase() : null;
}

function toForeignCaller(result: TokenVerification<KnownCaller>): Caller {
  if (result.ok) return result.caller;
  return 'unavailable' in result
    ? { ok: false, denial: unavailable('issuer_unavailable') }
    : badJwt(result.reason);
}

function badJwt(reason: string): { readonly ok: false; readonly denial: AuthzDenied } {
  return { ok: false, denial: invalidToken('bad_jwt', `${errors.bad_jwt.definition.message}, ${reason}`) };
}

/** Writes are validated: an invalid limit is of another program. */
function readOrganizationLimit(organization: StoredValues['organization']): LimitOverride | undefined {
  if (organization?.limit === undefined) return undefined;
  const parsed = parseLimitOverride(organization.limit);
  return parsed.ok ? parsed.limit : undefined;
}

/** Parses `app_metadata.limit`, or else `app_metadata.rate_limit`. */
export function parseUserLimit({ limit, rate_limit: rateLimit }: JsonObject) {
  return parseLimitOverride(limit ?? rateLimit);
}
