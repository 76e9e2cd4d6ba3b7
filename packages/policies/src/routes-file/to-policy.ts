import { formatProblem } from '@tollgate/rules/problem';
import { type Access, authenticated } from '../compile/access.ts';
import { compilePolicy } from '../compile/compile.ts';
import type { LimitDescriptor } from '../compile/limits.ts';
import { limitAttributes } from '../definition/fields.ts';
import { policyApiVersion, policyKind } from '../definition/resource-shape.ts';
import type { SegmentsPattern } from '../match/path-pattern.ts';
import { readPolicy } from '../read/read-policy.ts';
import { hasLimits, type RouteRule, type RouteRules } from './route-rules.ts';

export interface PolicyTarget {
  readonly namespace: string;
  readonly name: string;
  readonly hosts: readonly string[];
}

/** A manifest, or what keeps the file from being one. */
export type ConvertedRules =
  | { readonly ok: true; readonly yaml: string; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Converts a routes file to an AccessPolicy that decides alike, and denies what is limited until
 * the numbers are set: the file has no numbers of limits.
 */
export function convertToPolicy(rules: RouteRules, { hosts, ...metadata }: PolicyTarget): ConvertedRules {
  const { fallback } = rules.policy;
  const limits = new LimitList(rules.addedAttributes);
  const defaults = limits.add(fallback.limits, 'limit');
  const access = toAccess(fallback.access);
  const converted = rules.routes.map((route) => convertRoute(route, { access, defaults, limits }));
  const problems = [...limits.problems, ...converted.flatMap(({ problem }) => problem ?? [])];
  if (problems.length > 0) return { ok: false, problems };
  const spec = {
    hosts,
    ...(!isSame(access, { type: 'Authenticated' }) && { access }),
    ...(converted.length > 0 && { rules: converted.map(({ rule }) => rule) }),
    ...(limits.names.length > 0 && { limits: limits.fields(defaults) }),
  };
  const manifest = { apiVersion: policyApiVersion, kind: policyKind, metadata, spec };
  const read = readPolicy(manifest, `${metadata.namespace}/${metadata.name}`);
  const compiled = read.ok ? compilePolicy(read.resource) : read;
  if (!compiled.ok) return { ok: false, problems: compiled.problems.map(formatProblem) };
  const yaml = [
    ...fileComments(rules).map((comment) => `# ${comment}`),
    `apiVersion: ${policyApiVersion}`,
    `kind: ${policyKind}`,
    `metadata: ${formatFlow({ name: metadata.name, namespace: metadata.namespace })}`,
    'spec:',
    `  hosts: ${formatFlow(hosts)}`,
    ...(spec.access === undefined ? [] : [`  access: ${formatFlow(spec.access)}`]),
    ...(converted.length > 0 ? ['  rules:'] : []),
    ...converted.flatMap(({ comment, rule }) => [
      `    # ${comment}`,
      ...Object.entries(rule).map(
        ([name, value], index) => `    ${index === 0 ? '-' : ' '} ${name}: ${formatFlow(value)}`,
      ),
    ]),
    ...(spec.limits === undefined ? [] : ['  limits:']),
    ...(spec.limits ?? []).map((limit) => `    - ${formatFlow(limit)}`),
  ];
  return { ok: true, yaml: `${yaml.join('\n')}\n`, warnings: compiled.warnings.map(formatProblem) };
}

/** The limits of the policy: one for each descriptor of the file. */
class LimitList {
  readonly problems: string[] = [];
  readonly #added: readonly string[];
  readonly #limits = new Map<string, { readonly [name: string]: Flow }>();

  constructor(addedAttributes: readonly string[]) {
    this.#added = addedAttributes;
  }

  get names(): readonly string[] {
    return [...this.#limits.keys()];
  }

  /** Returns the names of the limits. */
  add(descriptors: readonly LimitDescriptor[], place: string): readonly string[] {
    return descriptors.map(({ keys }) => {
      const by = keys.map((key) => toAttribute(key, this.#added));
      const unknown = keys.filter((_, index) => by[index] === undefined).join(', ');
      if (unknown !== '')
        this.problems.push(
          `${place}: access policies have no limit by ${unknown}: change [${keys.join(', ')}]`,
        );
      const name = keys.join('-');
      this.#limits.set(name, { name, by: by.flatMap((item) => item ?? []), requests: 0, per: 'Minute' });
      return name;
    });
  }

  fields(defaults: readonly string[]): readonly Flow[] {
    return [...this.#limits].map(([name, limit]) =>
      defaults.includes(name) ? limit : { ...limit, only: true },
    );
  }
}

interface RouteContext {
  /** Access of requests that no route matches, which rules have by default. */
  readonly access: Flow;
  /** Names of limits that rules have by default. */
  readonly defaults: readonly string[];
  readonly limits: LimitList;
}

interface ConvertedRoute {
  readonly comment: string;
  readonly rule: { readonly [name: string]: Flow };
  readonly problem?: string;
}

function convertRoute(route: RouteRule, { access, defaults, limits }: RouteContext): ConvertedRoute {
  const place = `line ${route.position.line}`;
  const { source } = route.path;
  const own = toAccess(route.access);
  const named = route.access.type === 'Denied' ? [] : limits.add(route.limits, place);
  const matches = toMatches(route);
  const rule = {
    matches: matches ?? [],
    ...(!isSame(own, access) && { access: own }),
    ...(!isSame([...named].sort(), [...defaults].sort()) && { limits: named }),
  };
  const problem = `${place}: ${source}: access policies cannot ignore the case of characters outside ASCII`;
  return { comment: `${place}: ${quote(source)}`, rule, ...(matches === undefined && { problem }) };
}

/** Comments on what the policy does not have from the file. */
function fileComments(rules: RouteRules): readonly string[] {
  const { claims, issuers, policy } = rules;
  const hasClaims = claims.attributes.size + claims.added.size > 0;
  const kept = [...(hasClaims ? ['claims'] : []), ...(issuers.length > 0 ? ['issuers'] : [])].join(' and ');
  const domain =
    policy.limitDomain === undefined ? 'their domain' : `the domain ${quote(policy.limitDomain)}`;
  return [
    ...(kept === '' ? [] : [`Keep ${kept} in the routes file: access policies do not have them.`]),
    ...(hasLimits(rules)
      ? [`Set the numbers of the limits, which are in the rules of ${domain}: 0 denies all requests.`]
      : []),
  ];
}

type Flow = string | number | boolean | readonly Flow[] | { readonly [name: string]: Flow };

function toAttribute(key: string, added: readonly string[]): Flow | undefined {
  if (added.includes(key)) return { claim: key };
  return Object.entries(limitAttributes).find(([, known]) => known === key)?.[0];
}

/** Conditions that are the default are left out. */
function toAccess(access: Access): Flow {
  if (access.type !== 'Authenticated') return { type: access.type };
  const { roles, assurance, anonymousUsers, audiences } = access;
  const conditions = {
    ...(roles && { roles }),
    ...(assurance !== authenticated.assurance && { assurance: assurance.toUpperCase() }),
    ...(anonymousUsers && { anonymousUsers }),
    ...(audiences && { audiences }),
  };
  return Object.keys(conditions).length > 0 ? conditions : { type: access.type };
}

/** Undefined if there is no equivalent. */
function toMatches({ path: { pattern }, methods }: RouteRule): readonly Flow[] | undefined {
  // In a policy, too, GET includes HEAD.
  const listed = methods && [...methods].filter((method) => method !== 'HEAD' || !methods.has('GET'));
  return toPaths(pattern)?.map((path) => ({ path, ...(listed && { methods: listed }) }));
}

/** Undefined if there is no equivalent. */
function toPaths(pattern: SegmentsPattern): readonly Flow[] | undefined {
  const { segments, isPrefix, ignoreCase } = pattern;
  const isPlain = !ignoreCase && segments.every((segment) => segment !== undefined);
  const path = `/${segments.join('/')}`;
  if (isPlain && isPrefix) return [{ value: path }];
  if (isPlain) {
    const exact = { type: 'Exact', value: path };
    return segments.length === 0 ? [exact] : [exact, { type: 'Exact', value: `${path}/` }];
  }
  const parts: string[] = [];
  for (const segment of segments) {
    const part = segment === undefined ? '[^/]+' : toRegex(segment, ignoreCase);
    if (part === undefined) return undefined;
    parts.push(`/${part}`);
  }
  const end = isPrefix ? '(/.*)?' : '/?';
  return [{ type: 'RegularExpression', value: `${ignoreCase ? '(?i)' : ''}${parts.join('')}${end}` }];
}

const isAscii = /^[\0-\x7f]*$/;
const special = /[.*+?()|[\]{}^$\\]/g;

/** Regular expressions are compared with the canonical path, which escapes other characters. */
function toRegex(segment: string, ignoreCase: boolean): string | undefined {
  if (!ignoreCase) return segment.replace(special, '\\$&');
  if (!isAscii.test(segment)) return undefined;
  return (
    segment
      .replace(/[^\w.~!$&'()*+,;=:@-]/g, (found) => encodeURIComponent(found))
      .replace(special, '\\$&')
      // The lower case of the Kelvin sign is k.
      .replaceAll('k', '(k|%E2%84%AA)')
  );
}

function isSame(a: Flow, b: Flow): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function formatFlow(value: Flow): string {
  if (typeof value === 'string') return formatText(value);
  if (typeof value !== 'object') return String(value);
  if (isList(value)) return `[${value.map(formatFlow).join(', ')}]`;
  const fields = Object.entries(value).map(([name, field]) => `${name}: ${formatFlow(field)}`);
  return `{ ${fields.join(', ')} }`;
}

const isList = (value: Flow): value is readonly Flow[] => Array.isArray(value);

/** Texts that YAML 1.1 and 1.2 read as something else. */
const reserved = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

function formatText(text: string): string {
  return /^[A-Za-z][\w-]*$/.test(text) && !reserved.test(text) ? text : quote(text);
}

/** Readers of YAML 1.1 take some characters outside ASCII for the end of a line. */
function quote(text: string): string {
  return JSON.stringify(text).replace(
    /[^ -~]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
