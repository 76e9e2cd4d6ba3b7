import type { Position } from '@tollgate/yaml/tree';
import type { Access } from '../compile/access.ts';
import { authenticated } from '../compile/access.ts';
import type { CompiledPolicy, PolicyRule } from '../compile/compile.ts';
import type { LimitDescriptor } from '../compile/limits.ts';
import { callerAttributeNames } from '../decide/caller.ts';
import { PathIndex } from '../match/path-index.ts';
import { foldCase, parseOwnPath, type SegmentsPattern } from '../match/path-pattern.ts';
import type { RequestAttributes } from '../match/request-match.ts';
import { type ClaimMapping, emptyMapping } from './claim-mapping.ts';
import type { IssuerRule } from './issuer.ts';

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
