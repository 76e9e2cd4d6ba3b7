import type { Position } from '@tollgate/yaml/tree';
import { extAuthzSettings } from '../config/ext-authz.ts';
import type { AssuranceLevel } from '../sessions/store.ts';
import { callerAttributeNames, constantAttributes } from './caller.ts';
import { type ClaimMapping, emptyMapping } from './claim-mapping.ts';
import type { IssuerRule } from './issuer-rules.ts';
import { parseRequestPath } from './request-path.ts';

/**
 * A path pattern: `/healthz`, `/docs/*` (any one segment), `/api/**` (`/api` and everything below).
 */
export interface RoutePath {
  /** The path as it is in the file. */
  readonly source: string;
  /** Undefined matches any one segment. */
  readonly segments: readonly (string | undefined)[];
  /** Ends with `**`. */
  readonly isPrefix: boolean;
  /** Set for upstreams with case-insensitive paths. The segments are in lower case. */
  readonly ignoreCase: boolean;
}

type ParsedRoutePath =
  | { readonly ok: true; readonly path: RoutePath }
  | { readonly ok: false; readonly reason: string };

const notAscii = /[^\0-\x7f]+/g;

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
    // Clients send characters outside ASCII percent-encoded.
    const parsed = parseRequestPath('GET', `/${part.toWellFormed().replace(notAscii, encodeURIComponent)}`);
    if (!parsed.ok) return reject(`requests with ${part} are always rejected: ${parsed.reason}`);
    if (parsed.path.alternatives.length > 0)
      return reject(`remove what follows the ;, or the encoded ? or #, from ${part}`);
    segments.push(...(parsed.path.segments ?? []));
  }
  const folded = ignoreCase ? segments.map((segment) => segment && foldCase(segment)) : segments;
  return { ok: true, path: { source, segments: folded, isPrefix, ignoreCase } };
}

/** Rejects what is most likely a mistake, or would never match. */
function segmentProblem(part: string): string | undefined {
  if (part === '') return 'it has an empty segment (//)';
  if (part === '**') return '** is only allowed at the end';
  if (part.includes('*') && part !== '*')
    return `* matches a whole segment: write %2A for the character in ${part}`;
  return /^:|^\{.*\}$/.test(part) ? `write * for any segment, not ${part}` : undefined;
}

function matchesPath({ segments, isPrefix, ignoreCase }: RoutePath, path: readonly string[]): boolean {
  if (isPrefix ? path.length < segments.length : path.length !== segments.length) return false;
  return segments.every((segment, index) => {
    if (segment === undefined) return true;
    const other = path[index] ?? '';
    return segment === (ignoreCase ? foldCase(other) : other);
  });
}

/** Converts a segment to lower case, including percent-encoded letters. */
function foldCase(segment: string): string {
  // Decoding succeeds: paths that are not UTF-8 were rejected.
  return (segment.includes('%') ? decodeURIComponent(segment) : segment).toLowerCase();
}

/** Whether `outer` matches every path that `inner` matches. */
export function coversPath(outer: RoutePath, inner: RoutePath): boolean {
  const [outerLength, innerLength] = [outer.segments.length, inner.segments.length];
  if (outer.isPrefix ? innerLength < outerLength : innerLength !== outerLength || inner.isPrefix)
    return false;
  return outer.segments.every((segment, index) => {
    const other = inner.segments[index];
    if (segment === undefined || other === undefined) return segment === undefined;
    if (outer.ignoreCase) return segment === (inner.ignoreCase ? other : foldCase(other));
    return !inner.ignoreCase && segment === other;
  });
}

function reject(reason: string): ParsedRoutePath {
  return { ok: false, reason };
}

/** The first route that matches applies, or else `fallback` and `fallbackLimit`. */
export interface RouteRules {
  readonly routes: readonly RouteRule[];
  readonly fallback: RouteRequirement;
  readonly fallbackLimit: RouteLimit;
  /** Domain of the descriptors. Undefined: that of the settings. */
  readonly limitDomain: string | undefined;
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

/** Registered methods. A misspelled method would never match. */
export const knownMethods: readonly string[] = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'],
  ...['PROPFIND', 'PROPPATCH', 'MKCOL', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH'],
];

/** The descriptors that the rate limit service gets. Empty: no limit. */
export type RouteLimit = readonly (readonly string[])[];

export interface RouteRule {
  readonly path: RoutePath;
  /** Undefined: all. `GET` includes `HEAD`. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly requirement: RouteRequirement;
  readonly limit: RouteLimit;
  /** Position of the path in the file. */
  readonly position: Position;
}

/** Requirement of a route for the caller. */
export type RouteRequirement =
  /** Nothing. */
  | { readonly access: 'public' }
  /** All requests are denied. */
  | { readonly access: 'deny' }
  /** A valid token. */
  | {
      readonly access: 'authenticated';
      /** Undefined: any role. */
      readonly roles: readonly string[] | undefined;
      readonly aal: AssuranceLevel;
      /** Whether anonymous users are allowed. */
      readonly anonymous: boolean;
    };

/** Any user who is not anonymous. */
export const signedIn: RouteRequirement = {
  access: 'authenticated',
  roles: undefined,
  aal: 'aal1',
  anonymous: false,
};

/** The rules without a file: every path requires a user who is signed in. */
export const defaultRules: RouteRules = {
  routes: [],
  fallback: signedIn,
  fallbackLimit: [],
  limitDomain: undefined,
  claims: emptyMapping,
  issuers: [],
  addedAttributes: [],
};

/** Returns the first route that matches. Takes time proportional to routes × segments. */
export function findRoute(
  { routes }: RouteRules,
  method: string,
  segments: readonly string[] | undefined,
): RouteRule | undefined {
  if (segments === undefined) return undefined;
  return routes.find(
    ({ methods, path }) => (methods === undefined || methods.has(method)) && matchesPath(path, segments),
  );
}

export function hasLimits({ routes, fallbackLimit }: Pick<RouteRules, 'routes' | 'fallbackLimit'>): boolean {
  return fallbackLimit.length > 0 || routes.some(({ limit }) => limit.length > 0);
}

/**
 * Valid rules that may protect less than intended. `canLimit`: whether a rate limit service is set.
 */
export function routeRuleWarnings(rules: RouteRules, { canLimit }: { readonly canLimit: boolean }): string[] {
  const { env } = extAuthzSettings.extAuthzRateLimitAddress;
  const unused = `${env} has no effect: no route has a limit. Add limit to the routes file, or unset it`;
  return [
    ...openDefaultWarnings(rules),
    ...unlimitedCallerWarnings(rules),
    ...sessionLimitWarnings(rules),
    ...clientLimitWarnings(rules),
    ...(canLimit && !hasLimits(rules) ? [unused] : []),
  ];
}

function openDefaultWarnings({ routes, fallback }: RouteRules): string[] {
  const lines = routes
    .filter(({ requirement }) => requirement.access === 'deny')
    .map(({ position }) => position.line);
  if (fallback.access !== 'public' || lines.length === 0) return [];
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

/** Clients of other issuers have no user. */
function clientLimitWarnings(rules: RouteRules): string[] {
  const names = rules.issuers
    .filter(({ definition, kinds }) => definition.isKubernetes || kinds.client !== undefined)
    .map(({ definition }) => definition.name);
  const places = names.length === 0 ? '' : findRules(rules, isByUser);
  if (places === '') return [];
  return [
    `clients of the issuers ${names.join(', ')} are not limited (${places}): all descriptors of limit need a user. ` +
      'Add one without, such as [issuer, client_id]',
  ];
}

/** The lines of such rules, and `default`. */
function findRules(
  { routes, fallback, fallbackLimit }: RouteRules,
  matches: (requirement: RouteRequirement, limit: RouteLimit) => boolean,
): string {
  const places = routes.flatMap(({ requirement, limit, position }) =>
    matches(requirement, limit) ? [`line ${position.line}`] : [],
  );
  if (matches(fallback, fallbackLimit)) places.push('default');
  return places.join(', ');
}

function isBySession({ access }: RouteRequirement, limit: RouteLimit): boolean {
  return access !== 'deny' && limit.length > 0 && limit.every((names) => names.includes('session_id'));
}

const ofUsers = ['user_id', 'session_id'];

function isByUser({ access }: RouteRequirement, limit: RouteLimit): boolean {
  if (access === 'deny' || limit.length === 0) return false;
  return limit.every((names) => ofUsers.some((name) => names.includes(name)));
}

const ofEveryRequest: ReadonlySet<string> = new Set(requestAttributes);
/** Attributes of every caller with a token. Roles count: no token is without one by default. */
const ofEveryCaller: ReadonlySet<string> = new Set([...constantAttributes, ...requestAttributes, 'role']);

function admitsUnlimited(requirement: RouteRequirement, limit: RouteLimit): boolean {
  if (limit.length === 0 || requirement.access === 'deny') return false;
  if (requirement.access === 'public')
    return !limit.some((descriptor) => descriptor.every((name) => ofEveryRequest.has(name)));
  // The public key of a web page is a token without a user.
  return requirement.anonymous && !limit.some((names) => names.every((name) => ofEveryCaller.has(name)));
}
