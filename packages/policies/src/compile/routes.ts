import { isMapping, startReading } from '@tollgate/rules/resource-fields';
import { matchFields } from '../definition/fields.ts';
import { normalizeHost } from '../match/hosts.ts';
import type { RequestMatch } from '../match/request-match.ts';
import type { Route, RouteRule } from '../match/route.ts';
import { compileRouteMatch, coveringMatch } from '../match/route-match.ts';
import { readPart } from '../read/read-part.ts';

/** A route as the xDS server sends it. */
interface RouteMessage {
  readonly kind: string;
  readonly name: string;
  readonly createdMs: bigint;
  readonly rules: readonly RuleMessage[];
}

interface RuleMessage extends Omit<RouteRule, 'matches'> {
  /** Each the JSON of a match. */
  readonly matches: readonly string[];
}

/** Compiles a route. What it does not understand denies requests, and affects no other route. */
export function compileRoute(namespace: string, { kind, name, createdMs, rules }: RouteMessage): Route {
  return { kind, namespace, name, createdMs: Number(createdMs), rules: rules.map(compileRule) };
}

function compileRule({ sectionName, hosts, matches, policy, overrides, gateways }: RuleMessage): RouteRule {
  return {
    ...{ sectionName, policy, overrides, gateways },
    hosts: hosts.map((host) => (host.startsWith('*') ? host.toLowerCase() : normalizeHost(host))),
    matches: (matches.length === 0 ? ['{}'] : matches).map(compileOne),
  };
}

function compileOne(json: string): RouteRule['matches'][number] {
  const match = readMatch(json);
  const compiled = match && compileRouteMatch(match);
  return compiled === undefined
    ? { match: coveringMatch(match ?? {}), uncertain: true, headers: [] }
    : {
        match: compiled,
        uncertain: false,
        headers: (match?.headers ?? []).map(({ name }) => name.toLowerCase()),
      };
}

/** Undefined if the match has anything unknown. */
function readMatch(json: string): RequestMatch | undefined {
  const value = parseJson(json);
  if (!isMapping(value)) return undefined;
  const read = startReading('', () => undefined);
  const present = Object.entries(value).filter(([, part]) => !Array.isArray(part) || part.length > 0);
  const { path, ...match } = readPart({ read, field: '', values: Object.fromEntries(present) }, matchFields);
  if (read.problems.length > 0) return undefined;
  return { ...match, path: path && { type: path.type ?? 'PathPrefix', value: path.value } };
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
