import type { Access } from '@tollgate/policies/compile/access';
import { authenticated } from '@tollgate/policies/compile/access';
import type { CompiledPolicy, PolicyRule } from '@tollgate/policies/compile/compile';
import type { LimitDescriptor } from '@tollgate/policies/compile/limits';
import { callerAttributeNames, constantAttributes, ownIssuer } from '@tollgate/policies/decide/caller';
import { PathIndex } from '@tollgate/policies/match/path-index';
import { foldCase, parseOwnPath, type SegmentsPattern } from '@tollgate/policies/match/path-pattern';
import type { RequestAttributes } from '@tollgate/policies/match/request-match';
import type { Position } from '@tollgate/yaml/tree';
import { extAuthzSettings } from '../config/ext-authz.ts';
import { type ClaimMapping, emptyMapping } from './claim-mapping.ts';
import type { IssuerRule } from './issuer-rules.ts';

/**
 * A path pattern: `/healthz`, `/docs/*` (any one segment), `/api/**` (`/api` and everything below).
 */
export interface RoutePath {
  /** The path as it is in the file. */
  readonly source: string;
  readonly pattern: SegmentsPattern;
}

type ParsedRoutePath =
  | { readonly ok: true; readonly path: RoutePath }
  | { readonly ok: false; readonly reason: string };

/** Parses the pattern of a rule. Its segments are in the canonical form of `parseRequestPath`. */
export function parseRoutePath(source: string, { ignoreCase = false } = {}): ParsedRoutePath {
  if (!source.startsWith('/')) return reject('a path starts with a slash');
  if (source.includes('?')) return reject('remove the query, which is not matched');
  const parts = source === '/' ? [] : source.slice(1).split('/');
  if (parts.at(-1) === '') return reject('remove the trailing slash: requests match with and without it');
  const isPrefix = parts.at(-1) === '**';
  const segments: (string | undefined)[] = [];
  for (const part of isPrefix ? parts.slice(0, -1) : parts) {
    const reason = segmentProblem(part);
    if (reason !== undefined) return reject(reason);
    if (part === '*') {
      segments.push(undefined);
      continue;
    }
    const parsed = parseOwnPath(`/${part}`, part);
    if (!parsed.ok) return parsed;
    segments.push(...parsed.own.segments);
  }
  const folded = ignoreCase ? segments.map((segment) => segment && foldCase(segment)) : segments;
  const pattern: SegmentsPattern = {
    type: 'segments',
    segments: folded,
    isPrefix,
    trailingSlash: undefined,
    ignoreCase,
  };
  return { ok: true, path: { source, pattern } };
}

/** Rejects what is most likely a mistake, or would never match. */
function segmentProblem(part: string): string | undefined {
  if (part === '') return 'it has an empty segment (//)';
  if (part === '**') return '** is only allowed at the end';
  if (part.includes('*') && part !== '*')
    return `* matches a whole segment: write %2A for the character in ${part}`;
  return /^:|^\{.*\}$/.test(part) ? `write * for any segment, not ${part}` : undefined;
}

function reject(reason: string): ParsedRoutePath {
  return { ok: false, reason };
}

/** The first route that matches applies, or else the fallback of the policy. */
export interface RouteRules {
  readonly routes: readonly RouteRule[];
  /** The routes, compiled. */
  readonly policy: CompiledPolicy;
  /** Attributes from claims of own tokens. */
  readonly claims: ClaimMapping;
  readonly issuers: readonly IssuerRule[];
  /** Names of the attributes that the mappings add, for headers. */
  readonly addedAttributes: readonly string[];
}

/** Attributes of requests that do not depend on the caller. */
export const requestAttributes = ['remote_address', 'path', 'method'];

/**
 * Attributes of a request that a rate limit can be by; the file may add others. No request can
 * choose its values, but a user gets another `session_id` with each sign-in, and on a route with
 * `anonymous: true` another `user_id` with each anonymous sign-up.
 */
export const limitAttributes: readonly string[] = [...callerAttributeNames, ...requestAttributes];

/** A limit of the file is a descriptor of these attributes. */
export function toLimit(keys: readonly string[]): LimitDescriptor {
  return { name: undefined, plans: undefined, keys };
}

export interface RouteRule extends PolicyRule {
  readonly path: RoutePath;
  /** Undefined: all. `GET` includes `HEAD`. */
  readonly methods: ReadonlySet<string> | undefined;
  /** Position of the path in the file. */
  readonly position: Position;
}

/** Compiles routes, of which the first that matches applies. */
export function compileRoutes(
  routes: readonly RouteRule[],
  fallback: Omit<PolicyRule, 'label'>,
  limitDomain: string | undefined,
): CompiledPolicy {
  const entries = routes.map((route) => {
    const { methods } = route;
    const condition = methods && (({ method }: RequestAttributes) => methods.has(method));
    return { pattern: route.path.pattern, condition, value: route };
  });
  const rules = new PathIndex<RequestAttributes, PolicyRule>(entries);
  return { name: undefined, limitDomain, rules, fallback: { ...fallback, label: undefined }, headers: [] };
}

/** Values of SVC_EXT_AUTHZ_DEFAULT_ACCESS. */
const defaultAccesses: Readonly<Record<string, Access>> = {
  authenticated,
  public: { type: 'Public' },
  denied: { type: 'Denied' },
};

/** The access of a setting; undefined if it is empty. */
export const toDefaultAccess = (setting: string): Access | undefined => defaultAccesses[setting];

/** The rules without a file: by default, every path requires a user who is signed in. */
export function createDefaultRules(access: Access = authenticated): RouteRules {
  return {
    routes: [],
    policy: compileRoutes([], { access, limits: [] }, undefined),
    claims: emptyMapping,
    issuers: [],
    addedAttributes: [],
  };
}

export const defaultRules: RouteRules = createDefaultRules();

/** All rules, the fallback last. */
function allRules({ routes, policy }: Pick<RouteRules, 'routes' | 'policy'>): readonly PolicyRule[] {
  return [...routes, policy.fallback];
}

export function hasLimits(rules: Pick<RouteRules, 'routes' | 'policy'>): boolean {
  return allRules(rules).some(({ limits }) => limits.length > 0);
}

/**
 * Valid rules that may protect less than intended. `canLimit`: whether a rate limit service is set;
 * `hasClients`: whether the OAuth server issues tokens to machine clients.
 */
export function routeRuleWarnings(
  rules: RouteRules,
  { canLimit, hasClients = false }: { readonly canLimit: boolean; readonly hasClients?: boolean },
): string[] {
  const { env } = extAuthzSettings.extAuthzRateLimitAddress;
  const unused = `${env} has no effect: no route has a limit. Add limit to the routes file, or unset it`;
  return [
    ...openDefaultWarnings(rules),
    ...unlimitedCallerWarnings(rules),
    ...sessionLimitWarnings(rules),
    ...clientLimitWarnings(rules, hasClients),
    ...(canLimit && !hasLimits(rules) ? [unused] : []),
  ];
}

function openDefaultWarnings({ routes, policy }: RouteRules): string[] {
  const lines = routes.filter(({ access }) => access.type === 'Denied').map(({ position }) => position.line);
  if (policy.fallback.access.type !== 'Public' || lines.length === 0) return [];
  return [
    `default is public, so access: deny (line ${lines.join(', ')}) protects only these paths: the upstream may serve the same ` +
      'resource under another path, such as in another case. Use default: deny or authenticated, with public routes',
  ];
}

/** Descriptors of which a value is missing are not sent. */
function unlimitedCallerWarnings(rules: RouteRules): string[] {
  const places = findRules(rules, admitsUnlimited);
  if (places === '') return [];
  return [
    `callers without a user are not limited (${places}): all descriptors of limit need an identity. ` +
      'Add one without, such as [remote_address]',
  ];
}

function sessionLimitWarnings(rules: RouteRules): string[] {
  const places = findRules(rules, isBySession);
  if (places === '') return [];
  return [
    `users get a new limit with each sign-in, and tokens without a session are not limited (${places}): all ` +
      'descriptors of limit have session_id. Add one without, such as [user_id]',
  ];
}

/** Clients have no user. */
function clientLimitWarnings(rules: RouteRules, hasClients: boolean): string[] {
  const others = rules.issuers
    .filter(({ definition, kinds }) => definition.isKubernetes || kinds.client !== undefined)
    .map(({ definition }) => definition.name);
  const names = hasClients ? [ownIssuer, ...others] : others;
  const places = names.length === 0 ? '' : findRules(rules, isByUser);
  if (places === '') return [];
  return [
    `clients of the issuers ${names.join(', ')} are not limited (${places}): all descriptors of limit need a user. ` +
      'Add one without, such as [issuer, client_id]',
  ];
}

/** The lines of such rules, and `default`. */
function findRules(
  { routes, policy }: RouteRules,
  matches: (access: Access, limits: readonly LimitDescriptor[]) => boolean,
): string {
  const places = routes.flatMap(({ access, limits, position }) =>
    matches(access, limits) ? [`line ${position.line}`] : [],
  );
  const { access, limits } = policy.fallback;
  if (matches(access, limits)) places.push('default');
  return places.join(', ');
}

function isBySession({ type }: Access, limits: readonly LimitDescriptor[]): boolean {
  return type !== 'Denied' && limits.length > 0 && limits.every(({ keys }) => keys.includes('session_id'));
}

const ofUsers = ['user_id', 'session_id'];

function isByUser({ type }: Access, limits: readonly LimitDescriptor[]): boolean {
  if (type === 'Denied' || limits.length === 0) return false;
  return limits.every(({ keys }) => ofUsers.some((name) => keys.includes(name)));
}

const ofEveryRequest: ReadonlySet<string> = new Set(requestAttributes);
/** Attributes of every caller with a token. Roles count: no token is without one by default. */
const ofEveryCaller: ReadonlySet<string> = new Set([...constantAttributes, ...requestAttributes, 'role']);

function admitsUnlimited(access: Access, limits: readonly LimitDescriptor[]): boolean {
  if (limits.length === 0) return false;
  if (access.type === 'Public')
    return !limits.some(({ keys }) => keys.every((name) => ofEveryRequest.has(name)));
  if (access.type !== 'Authenticated') return false;
  // The public key of a web page is a token without a user.
  return access.anonymousUsers && !limits.some(({ keys }) => keys.every((name) => ofEveryCaller.has(name)));
}
