import type { RuleProblem } from '@tollgate/rules/problem';
import { policyDomain } from '../definition/resource-shape.ts';
import type { AccessSpec, LimitSpec, PolicyResource, PolicySpec, RuleSpec } from '../definition/spec.ts';
import { PathIndex } from '../match/path-index.ts';
import { RegexBudget } from '../match/path-pattern.ts';
import { PatternTree } from '../match/pattern-tree.ts';
import { type CompiledMatch, compileMatch, type RequestAttributes, toEntry } from '../match/request-match.ts';
import { type Access, authenticated, compileAccess } from './access.ts';
import { browserHeaders, hasBrowser } from './browser.ts';
import { findUncovered } from './coverage.ts';
import { allLimits, checkLimits, type LimitDescriptor, toLimitDescriptor } from './limits.ts';
import type { ProtectedResource } from './resource.ts';

/** Access and limits of a part of the target of a policy. */
export interface PolicyRule {
  /** Paths of the rule as written; undefined where no rule matches. */
  readonly label: string | undefined;
  /** Path of the rule in its policy. Undefined where no rule matches, and for a file of routes. */
  readonly field?: string;
  readonly access: Access;
  readonly limits: readonly LimitDescriptor[];
}

/** Access and limits of what a policy is for. */
export interface CompiledPolicy {
  /** `namespace/name`; undefined for a file of routes. */
  readonly name: string | undefined;
  /** Domain of the limits; undefined for that of the settings. */
  readonly limitDomain: string | undefined;
  /** The first rule that matches applies. */
  readonly rules: PathIndex<RequestAttributes, PolicyRule>;
  /** Applies where no rule matches. */
  readonly fallback: PolicyRule;
  /** Names of headers that it compares or counts by, in lower case. */
  readonly headers: readonly string[];
  /** Resources of its parts by the path of their metadata. Undefined: none. */
  readonly resources?: ReadonlyMap<string, ProtectedResource>;
  /** Whether browsers sign in for any part of it. Undefined: no. */
  readonly hasBrowser?: true;
  /** Holds for the routes of its Gateways in addition to their own policies. */
  readonly overrides?: CompiledPolicy;
}

const noRules = new PathIndex<RequestAttributes, PolicyRule>([]);

/** Stands for a policy that never had a valid version. */
export function createInvalidPolicy(name: string): CompiledPolicy {
  const fallback: PolicyRule = { label: undefined, access: { type: 'Invalid' }, limits: [] };
  const policy = { name, limitDomain: undefined, rules: noRules, fallback, headers: [] };
  return { ...policy, overrides: policy };
}

/** Limits that have less effect than intended. */
export interface PolicyWarning extends RuleProblem {
  readonly reason: 'LimitsDoNotCoverAll' | 'Ineffective';
}

export type CompileResult =
  | { readonly ok: true; readonly policy: CompiledPolicy; readonly warnings: readonly PolicyWarning[] }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

type Report = (field: string, message: string) => void;

/**
 * Instructions of all regular expressions of a policy: about fifty ordinary ones. With one of this
 * size, a path of 4,000 characters takes a tenth of a second.
 */
const maxRegexSize = 2_048;

/** Compiles a policy, or says everything that is wrong with it. */
export function compilePolicy(resource: PolicyResource): CompileResult {
  const { spec } = resource;
  const name = `${resource.namespace}/${resource.name}`;
  const problems: RuleProblem[] = [];
  const report: Report = (field, message) =>
    void problems.push({ source: name, field: `spec.${field}`, path: `spec.${field}`, message });
  if ((spec.hosts === undefined) === (spec.targetRefs === undefined))
    report('hosts', `needs exactly one of hosts and targetRefs, and has ${spec.hosts ? 'both' : 'neither'}`);
  checkParts(spec, report);
  problems.push(...checkLimits(resource));
  const { defaults = {} } = spec;
  const limitSpecs = spec.limits ?? defaults.limits ?? [];
  const scope: Scope = { limits: limitSpecs, report, access: undefined, hosts: spec.hosts };
  const accessField = spec.access === undefined && defaults.access ? 'defaults.access' : 'access';
  const access = readAccess(spec.access ?? defaults.access, accessField, scope);
  const fallback = { label: undefined, access, limits: defaultLimits(scope.limits) };
  const regexes = new RegexBudget(maxRegexSize);
  const rules = (spec.rules ?? []).map((rule, index) =>
    compileRule(rule, index, { ...scope, access, regexes }),
  );
  reportUnreachable(rules, report);
  const overridden = spec.overrides && compileOverrides(spec.overrides, report);
  const resources = findResources([fallback, ...rules.map(({ rule }) => rule)], report);
  if (problems.length > 0) return { ok: false, problems };
  const entries = rules.flatMap(({ rule, matches }) => matches.map(({ match }) => toEntry(match, rule)));
  const limitDomain = policyDomain(resource);
  const isForBrowsers = [fallback, ...rules.map(({ rule }) => rule)].some(({ access }) => hasBrowser(access));
  const headers = [...findHeaders(spec), ...(isForBrowsers ? browserHeaders : [])];
  const common = { name, limitDomain, headers };
  const overrides = overridden && { ...common, rules: noRules, fallback: overridden };
  const policy = {
    ...{ ...common, rules: new PathIndex(entries), fallback },
    ...(resources.size > 0 && { resources }),
    ...(isForBrowsers && { hasBrowser: true as const }),
    ...(overrides && { overrides }),
  };
  const all = { rules: [fallback, ...rules.map(({ rule }) => rule)], overridden };
  const warnings = findWarnings(name, all, spec);
  return { ok: true, policy, warnings };
}

/** Parts that only policies of Gateways have, and that are other names of each other. */
function checkParts({ targetRefs, access, limits, defaults, overrides }: PolicySpec, report: Report): void {
  const isForGateways = targetRefs?.every(({ kind }) => kind === 'Gateway') ?? false;
  for (const [name, part] of Object.entries({ defaults, overrides }))
    if (part !== undefined && !isForGateways)
      report(name, 'holds for a Gateway only: targetRefs must be Gateways');
  for (const [name, part] of Object.entries({ access, limits }))
    if (part !== undefined && defaults?.[name as 'access' | 'limits'] !== undefined)
      report(`defaults.${name}`, `cannot be combined with ${name}; remove either`);
}

/** Without access, there is no condition on callers. */
function compileOverrides(
  { access, limits = [] }: NonNullable<PolicySpec['overrides']>,
  report: Report,
): PolicyRule {
  const scope: Scope = { limits, report, access: { type: 'Public' }, hosts: undefined };
  for (const name of ['resource', 'browser'] as const)
    if (access?.[name] !== undefined)
      report(`overrides.access.${name}`, 'belongs into the access of a route, or of `access`');
  const compiled = readAccess(access, 'overrides.access', scope);
  for (const [index, { only }] of limits.entries())
    if (only !== undefined)
      report(`overrides.limits[${index}].only`, 'has no effect: overrides hold for every request');
  return { label: undefined, access: compiled, limits: limits.map(toLimitDescriptor) };
}

function findHeaders(spec: PolicySpec): readonly string[] {
  const matches = (spec.rules ?? []).flatMap((rule) => rule.matches);
  const compared = matches.flatMap(({ headers = [] }) => headers);
  const counted = allLimits(spec).flatMap(({ limit }) =>
    limit.by.flatMap((item) => (typeof item !== 'string' && 'header' in item ? item.header : [])),
  );
  return [...compared.map(({ name }) => name.toLowerCase()), ...counted];
}

interface Scope {
  readonly limits: readonly LimitSpec[];
  readonly report: Report;
  /** Access of rules that have none. */
  readonly access: Access | undefined;
  readonly hosts: readonly string[] | undefined;
}

/** A rule, and its matches with their paths in the object. */
interface CompiledRule {
  readonly rule: PolicyRule;
  readonly matches: readonly { readonly field: string; readonly match: CompiledMatch }[];
}

interface RuleScope extends Scope {
  readonly regexes: RegexBudget;
}

function compileRule(spec: RuleSpec, index: number, scope: RuleScope): CompiledRule {
  const { report, limits, regexes } = scope;
  const matches = spec.matches.flatMap((match, position) => {
    const field = `rules[${index}].matches[${position}]`;
    const { path, methods } = match;
    const complete = {
      ...match,
      path: path && { type: path.type ?? 'PathPrefix', value: path.value },
      // HEAD must not bypass a rule for GET.
      methods: methods?.includes('GET') === true ? [...methods, 'HEAD'] : methods,
    } as const;
    const result = compileMatch(complete, (source) => regexes.compile(source));
    if (result.ok) return [{ field, match: result.match }];
    for (const problem of result.problems) report(`${field}.${problem.field}`, problem.message);
    return [];
  });
  const label = spec.matches.map(({ path }) => path?.value ?? '/').join(' ');
  const access = readAccess(spec.access, `rules[${index}].access`, scope);
  const named = spec.limits?.flatMap((name, position) => {
    const limit = limits.find((candidate) => candidate.name === name);
    if (limit === undefined)
      report(`rules[${index}].limits[${position}]`, `no limit is named '${name}'${knownLimits(limits)}`);
    return limit === undefined ? [] : [toLimitDescriptor(limit)];
  });
  const field = `spec.rules[${index}]`;
  return { rule: { label, field, access, limits: named ?? defaultLimits(limits) }, matches };
}

function readAccess(spec: AccessSpec | undefined, field: string, { access, report, hosts }: Scope): Access {
  if (spec === undefined) return access ?? authenticated;
  return compileAccess(spec, { hosts }, (name, message) => report(`${field}.${name}`, message));
}

function findResources(rules: readonly PolicyRule[], report: Report): ReadonlyMap<string, ProtectedResource> {
  const found = new Map<string, ProtectedResource>();
  for (const { access } of rules) {
    const resource = access.type === 'Authenticated' ? access.resource : undefined;
    if (resource === undefined) continue;
    const other = found.get(resource.metadataPath) ?? resource;
    if (JSON.stringify(other) !== JSON.stringify(resource))
      report('access.resource', `differs from another resource of the policy at ${resource.metadataUrl}`);
    found.set(resource.metadataPath, resource);
  }
  return found;
}

function defaultLimits(limits: readonly LimitSpec[]): readonly LimitDescriptor[] {
  return limits.filter(({ only }) => only !== true).map(toLimitDescriptor);
}

function knownLimits(limits: readonly LimitSpec[]): string {
  return limits.length === 0 ? '' : `: there are ${limits.map(({ name }) => name).join(', ')}`;
}

/** A match that never matches is a mistake. */
function reportUnreachable(rules: readonly CompiledRule[], report: Report): void {
  const earlier = new PatternTree();
  for (const { field, match } of rules.flatMap(({ matches }) => matches)) {
    const covering = earlier.findCovering(match.pattern);
    if (covering !== undefined) report(field, `never matches: ${covering} matches all of its requests`);
    else if (match.condition === undefined) earlier.add(match.pattern, field);
  }
}

/** Finds limits that have less effect than intended. */
function findWarnings(
  source: string,
  {
    rules,
    overridden,
  }: { readonly rules: readonly PolicyRule[]; readonly overridden?: PolicyRule | undefined },
  { rules: specs = [], limits, defaults = {} }: PolicySpec,
): readonly PolicyWarning[] {
  const toWarning = (reason: PolicyWarning['reason'], name: string, message: string): PolicyWarning => {
    const field = `spec.${name}`;
    return { source, field, path: field, message, reason };
  };
  const used = new Set(specs.flatMap((rule) => rule.limits ?? []));
  const field = limits === undefined && defaults.limits !== undefined ? 'defaults.limits' : 'limits';
  const unused = (limits ?? defaults.limits ?? []).flatMap(({ name, only }, index) =>
    only === true && !used.has(name)
      ? [toWarning('Ineffective', `${field}[${index}].only`, `no rule names '${name}', so it has no effect`)]
      : [],
  );
  return [
    ...findUncovered(rules, overridden).map((message) => toWarning('LimitsDoNotCoverAll', field, message)),
    ...findUncovered(overridden ? [{ ...overridden, label: 'all routes' }] : []).map((message) =>
      toWarning('LimitsDoNotCoverAll', 'overrides.limits', message),
    ),
    ...unused,
  ];
}
