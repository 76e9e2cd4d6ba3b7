import { parseNode } from '@tollgate/yaml/documents';
import type { Position, YamlNode } from '@tollgate/yaml/tree';
import { type Access, authenticated } from '../compile/access.ts';
import type { LimitDescriptor } from '../compile/limits.ts';
import { coversPattern } from '../match/path-pattern.ts';
import { knownMethods } from '../match/request-match.ts';
import { emptyMapping } from './claim-mapping.ts';
import { FieldReader, type Report } from './field-reader.ts';
import { readClaims } from './read-claims.ts';
import { readIssuers } from './read-issuers.ts';
import { LimitReader } from './read-limit.ts';
import {
  compileRoutes,
  hasLimits,
  parseRoutePath,
  type RoutePath,
  type RouteRule,
  type RouteRules,
} from './route-rules.ts';

export interface ParseOptions {
  /**
   * Default access of a setting, and its name. Undefined: `default` of the file, else signed-in
   * callers.
   */
  readonly defaultAccess?: { readonly access: Access; readonly setting: string } | undefined;
  /** Whether the OAuth server issues tokens to machine clients. Default false. */
  readonly hasClients?: boolean;
  /** Whether users have organizations. Default false: limits by `org_id` are rejected. */
  readonly hasOrganizations?: boolean;
  /** Whether callers may have API keys. Default false: limits by key are rejected. */
  readonly hasApiKeys?: boolean;
}

/** The rules, or all problems. */
export type ParsedRouteRules =
  | { readonly ok: true; readonly rules: RouteRules }
  | { readonly ok: false; readonly problems: readonly FileProblem[] };

/** Finding rules that never match compares each with all. */
const maxRoutes = 1000;

/** Rules have four levels. */
const maxDepth = 16;

const accessTypes = { public: 'Public', authenticated: 'Authenticated', deny: 'Denied' } as const;

const accesses = Object.keys(accessTypes) as (keyof typeof accessTypes)[]; // of exactly these keys

const assuranceLevels = ['aal1', 'aal2', 'aal3'] as const;

/** Parses the file: `routes`, of which the first match applies, and `default`. */
export function parseRouteRules(text: string, options: ParseOptions = {}): ParsedRouteRules {
  const yaml = parseNode(text, { maxDepth });
  if (!yaml.ok)
    return { ok: false, problems: [{ position: yaml.error.position, message: yaml.error.reason }] };
  const problems: FileProblem[] = [];
  const report = (position: Position | undefined, message: string): void =>
    void problems.push({ position, message });
  const reader = new FieldReader(report);
  const rules = readRules(yaml.root, { ...options, reader, report });
  if (problems.length === 0) return { ok: true, rules };
  return { ok: false, problems: problems.sort(byPosition) };
}

/** A problem at a position; without one, of the file as a whole. */
export interface FileProblem {
  readonly position: Position | undefined;
  readonly message: string;
}

function readRules(
  root: YamlNode | undefined,
  {
    reader,
    report,
    defaultAccess,
    hasOrganizations = false,
    hasClients = false,
    hasApiKeys = false,
  }: ParseOptions & { readonly reader: FieldReader; readonly report: Report },
): RouteRules {
  // An empty file is most likely still being written.
  if (root === undefined) report(undefined, 'the file is empty: write routes: [] for no rules');
  const fields =
    root === undefined
      ? {}
      : reader.fields(root, ['routes', 'default', 'limit', 'limit_domain', 'claims', 'issuers']);
  const claims = fields.claims ? readClaims(fields.claims, 'own', { reader, report }) : emptyMapping;
  const issuers = fields.issuers ? readIssuers(fields.issuers, { reader, report }) : [];
  const mappings = [claims, ...issuers.map(({ mapping }) => mapping)];
  const addedAttributes = [...new Set(mappings.flatMap(({ added }) => [...added.keys()]))];
  const mapped = new Set(mappings.flatMap(({ attributes }): string[] => [...attributes.keys()]));
  const hasIssuers = issuers.length > 0;
  const sources = { mapped, hasIssuers, hasOrganizations, hasClients, hasApiKeys };
  const limits = new LimitReader({ reader, report, addedAttributes, ...sources });
  const limit = (fields.limit && limits.read(fields.limit)) ?? [];
  if (fields.limit?.kind === 'list' && fields.limit.items().length === 0)
    report(fields.limit.position, 'the list is empty: leave it out');
  const limitDomain = fields.limit_domain && reader.text(fields.limit_domain);
  const items = fields.routes === undefined ? [] : reader.items(fields.routes);
  if (items.length > maxRoutes)
    report(fields.routes?.position, `too many routes: ${items.length}, the limit is ${maxRoutes}`);
  const routes = items
    .slice(0, maxRoutes)
    .flatMap((item) => readRoute(item, { limit, limits, reader, report }) ?? []);
  reportUnreachable(routes, report);
  const type = fields.default === undefined ? 'authenticated' : reader.oneOf(fields.default, accesses);
  const ofFile = type === undefined || type === 'authenticated' ? authenticated : { type: accessTypes[type] };
  const access = defaultAccess?.access ?? ofFile;
  if (fields.default !== undefined && access.type !== ofFile.type)
    report(fields.default.position, `contradicts ${defaultAccess?.setting}: remove default, or unset that`);
  const policy = compileRoutes(routes, { access, limits: limit }, limitDomain);
  if (fields.limit_domain !== undefined && !hasLimits({ routes, policy }))
    report(fields.limit_domain.position, 'limit_domain has no effect without limit; remove it, or add limit');
  return { routes, policy, claims, issuers, addedAttributes };
}

interface RouteOptions {
  /** Limit of routes that have none of their own. */
  readonly limit: readonly LimitDescriptor[];
  readonly limits: LimitReader;
  readonly reader: FieldReader;
  readonly report: Report;
}

function readRoute(item: YamlNode, options: RouteOptions): RouteRule | undefined {
  const { reader, report } = options;
  const fields = reader.fields(item, [
    'path',
    'methods',
    'access',
    'roles',
    'aal',
    'anonymous',
    'audiences',
    'ignore_case',
    'limit',
  ]);
  const methods = fields.methods && readMethods(fields.methods, reader);
  const access = readAccess(fields, reader, report);
  const limits = (fields.limit && options.limits.read(fields.limit)) ?? options.limit;
  if (fields.limit !== undefined && access.type === 'Denied')
    report(fields.limit.position, 'limit has no effect with access: deny; remove one of them');
  if (fields.path === undefined) {
    if (item.kind === 'mapping') report(item.position, 'a route requires a path');
    return undefined;
  }
  const { position } = fields.path;
  const ignoreCase = (fields.ignore_case && reader.flag(fields.ignore_case)) ?? false;
  const path = readPath(fields.path, { ignoreCase, reader, report });
  return path && { path, methods, access, limits, label: path.source, position };
}

function readPath(
  value: YamlNode,
  options: { readonly ignoreCase: boolean; readonly reader: FieldReader; readonly report: Report },
): RoutePath | undefined {
  const { ignoreCase, reader, report } = options;
  const source = reader.text(value);
  if (source === undefined) return undefined;
  const parsed = parseRoutePath(source, { ignoreCase });
  if (parsed.ok) return parsed.path;
  report(value.position, parsed.reason);
  return undefined;
}

function readMethods(value: YamlNode, reader: FieldReader): ReadonlySet<string> {
  const methods = new Set(reader.list(value, (item) => reader.oneOf(item, knownMethods)));
  // HEAD must not bypass a rule for GET.
  if (methods.has('GET')) methods.add('HEAD');
  return methods;
}

function readAccess(
  fields: Partial<Record<'access' | 'roles' | 'aal' | 'anonymous' | 'audiences', YamlNode>>,
  reader: FieldReader,
  report: Report,
): Access {
  const access = (fields.access && reader.oneOf(fields.access, accesses)) ?? 'authenticated';
  const roles = fields.roles && reader.list(fields.roles, (item) => reader.text(item));
  const assurance = (fields.aal && reader.oneOf(fields.aal, assuranceLevels)) ?? 'aal1';
  const anonymousUsers = (fields.anonymous && reader.flag(fields.anonymous)) ?? false;
  const type = accessTypes[access];
  const audiences = fields.audiences && reader.list(fields.audiences, (item) => reader.text(item));
  if (type === 'Authenticated')
    return { type, roles, assurance, anonymousUsers, ...(audiences && { audiences }) };
  for (const name of ['roles', 'aal', 'anonymous', 'audiences'] as const)
    if (fields[name] !== undefined)
      report(fields[name].position, `${name} has no effect with access: ${access}; remove one of them`);
  return { type };
}

/** A rule that never matches is a mistake. */
function reportUnreachable(routes: readonly RouteRule[], report: Report): void {
  for (const [index, { path, methods, position }] of routes.entries()) {
    // Its methods are invalid, which has been reported.
    if (methods?.size === 0) continue;
    const earlierRules = routes
      .slice(0, index)
      .filter((earlier) => coversPattern(earlier.path.pattern, path.pattern));
    const all = earlierRules.find((earlier) => earlier.methods === undefined);
    const taken = new Set(earlierRules.flatMap((earlier) => [...(earlier.methods ?? [])]));
    if (all === undefined && (methods === undefined || ![...methods].every((method) => taken.has(method))))
      continue;
    const lines = [...new Set((all ? [all] : earlierRules).map((rule) => rule.position.line))].join(', ');
    report(position, `${path.source} never matches: line ${lines} already matches all of its requests`);
  }
}

function byPosition({ position: a }: FileProblem, { position: b }: FileProblem): number {
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}
