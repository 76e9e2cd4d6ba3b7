import { runSteps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import type { Location, RuleProblem } from '@tollgate/rules/problem';
import {
  type DescriptorSpec,
  getTrialDocument,
  type RuleDocument,
  type LimitSpec as RuleLimit,
} from '@tollgate/rules/rule-document';
import { type FieldName, resourceSpelling, type Spelling } from '@tollgate/rules/spelling';
import { algorithmValues, storeFailureValues, unitValues, type Values } from '@tollgate/rules/values';
import { limitAttributes } from '../definition/fields.ts';
import { policyDomain } from '../definition/resource-shape.ts';
import type { LimitSpec, PolicyResource, PolicySpec } from '../definition/spec.ts';

/** A limit as the descriptor that counts it. */
export interface LimitDescriptor {
  /** Value of the first entry, `limit`; undefined without such an entry. */
  readonly name: string | undefined;
  /** Plans with another number, whose callers send the plan as the next entry. */
  readonly plans: ReadonlySet<string> | undefined;
  /** Keys of the other entries: an attribute, or `header_` or `claim_` and a name. */
  readonly keys: readonly string[];
  /** Undefined: denies beyond the limit. The others never do. */
  readonly mode?: LimitMode;
}

type LimitMode = Exclude<LimitSpec['mode'], 'Enforce' | undefined>;

export const headerKeyPrefix = 'header_';
export const claimKeyPrefix = 'claim_';

const toKey = (item: { readonly header: string } | { readonly claim: string }): string =>
  'header' in item ? `${headerKeyPrefix}${item.header}` : `${claimKeyPrefix}${item.claim}`;

export function toLimitDescriptor({ name, plans, by, mode }: LimitSpec): LimitDescriptor {
  const keys = by.map((item) => (typeof item === 'string' ? limitAttributes[item] : toKey(item)));
  const descriptor = { name, plans: plans && new Set(plans.keys()), keys };
  return mode === undefined || mode === 'Enforce' ? descriptor : { ...descriptor, mode };
}

/** A limit of any part of a policy. */
interface PlacedLimit {
  readonly limit: LimitSpec;
  /** Path in the object. */
  readonly field: string;
}

/** All limits of a policy; a limiter has them in one domain. */
export function allLimits({ limits, defaults, overrides }: PolicySpec): readonly PlacedLimit[] {
  const place = (list: readonly LimitSpec[] = [], field: string): readonly PlacedLimit[] =>
    list.map((limit, index) => ({ limit, field: `${field}[${index}]` }));
  return [
    ...place(limits, 'spec.limits'),
    ...place(defaults?.limits, 'spec.defaults.limits'),
    ...place(overrides?.limits, 'spec.overrides.limits'),
  ];
}

/** Messages about the rules have the names of the fields of a policy. */
const spelling: Spelling = { ...resourceSpelling, requests_per_unit: 'requests', unit: 'per' };

/**
 * The rules of the limits of a policy for a limiter: below the name of the limit, a plan with a
 * number of its own, then the attributes that it counts by. Limits in the mode Trial are on trial.
 */
export function toRuleDocument(resource: PolicyResource): RuleDocument {
  const fields: string[] = [];
  const toDescriptor = ({ limit, field }: PlacedLimit): DescriptorSpec => {
    const { keys } = toLimitDescriptor(limit);
    const count = (numbers: Pick<LimitSpec, 'requests' | 'unlimited'>, at: number): DescriptorSpec =>
      toChain(keys, { rateLimit: toRuleLimit(limit, numbers, at), shadowMode: limit.mode === 'Shadow', at });
    const ofPlans = [...(limit.plans ?? [])].map(([plan, numbers]): DescriptorSpec => {
      const at = fields.push(`${field}.plans.${plan}`) - 1;
      return { key: 'plan', value: plan, descriptors: [count(numbers, at)], at };
    });
    const at = fields.push(field) - 1;
    return { key: 'limit', value: limit.name, descriptors: [...ofPlans, count(limit, at)], at };
  };
  const limits = allLimits(resource.spec);
  const inForce = limits.filter(({ limit }) => limit.mode !== 'Trial').map(toDescriptor);
  const onTrial = limits.filter(({ limit }) => limit.mode === 'Trial').map(toDescriptor);
  return {
    source: `${resource.namespace}/${resource.name}`,
    spelling,
    domain: policyDomain(resource),
    descriptors: inForce,
    ...(onTrial.length > 0 && { trial: { descriptors: onTrial } }),
    locate: (at, field) => locate(fields[at] ?? 'spec.limits', field),
  };
}

function locate(parent: string, field: FieldName | undefined): Location {
  return { field: field === undefined ? parent : `${parent}.${spelling[field]}` };
}

function toChain(keys: readonly string[], leaf: Omit<DescriptorSpec, 'key'>): DescriptorSpec {
  const [key = '', ...rest] = keys;
  return rest.length === 0 ? { ...leaf, key } : { key, descriptors: [toChain(rest, leaf)], at: leaf.at };
}

function toRuleLimit(
  limit: LimitSpec,
  { requests, unlimited }: Pick<LimitSpec, 'requests' | 'unlimited'>,
  at: number,
): RuleLimit {
  const { name } = limit;
  if (unlimited === true) return { unlimited, requestsPerUnit: 0, name, at };
  const { burst, period, timeZone, lease } = limit;
  return {
    requestsPerUnit: requests ?? 0,
    unit: toFileText(limit.per, unitValues),
    period,
    algorithm: toFileText(limit.algorithm, algorithmValues),
    burst,
    timeZone,
    lease,
    onStoreFailure: toFileText(limit.onStoreFailure, storeFailureValues),
    name,
    at,
  };
}

/** The text that rules have for a value of an object. */
function toFileText(resource: string | undefined, values: Values): string | undefined {
  return Object.keys(values).find((text) => values[text]?.resource === resource);
}

/**
 * Checks the limits of a policy: each has one window and numbers, names are unique, and the rules
 * that limiters get compile.
 */
export function checkLimits(resource: PolicyResource): readonly RuleProblem[] {
  const limits = allLimits(resource.spec);
  const source = `${resource.namespace}/${resource.name}`;
  const problems: RuleProblem[] = [];
  const names = new Set<string>();
  for (const { limit, field } of limits) {
    const report = (name: string, message: string) =>
      void problems.push({ source, field: `${field}.${name}`, path: `${field}.${name}`, message });
    if (names.has(limit.name))
      report('name', `'${limit.name}' is the name of another limit: names must differ`);
    names.add(limit.name);
    checkNumbers(limit, report);
    if (new Set(limit.by.map((item) => JSON.stringify(item))).size < limit.by.length)
      report('by', 'has an attribute twice');
  }
  if (problems.length > 0 || limits.length === 0) return problems;
  const document = toRuleDocument(resource);
  return [document, getTrialDocument(document)].flatMap((rules) => {
    const compiled = rules && runSteps(compileRules([rules], { mergeDomains: false }));
    return compiled?.ok === false ? compiled.problems : [];
  });
}

function checkNumbers(limit: LimitSpec, report: (name: string, message: string) => void): void {
  const variants = [
    ['', limit],
    ...[...(limit.plans ?? [])].map(([plan, part]) => [`plans.${plan}.`, part] as const),
  ] as const;
  for (const [prefix, { requests, unlimited }] of variants) {
    if (requests === undefined && unlimited !== true)
      report(`${prefix}requests`, 'is required, or unlimited: true instead');
    if (requests !== undefined && unlimited === true)
      report(`${prefix}requests`, 'cannot be combined with unlimited: true; remove either');
  }
  const isCounted = variants.some(([, { unlimited }]) => unlimited !== true);
  if (limit.per !== undefined && limit.period !== undefined)
    report('period', 'cannot be combined with per; remove either');
  if (isCounted && limit.per === undefined && limit.period === undefined)
    report('per', 'is required, or period instead');
}
