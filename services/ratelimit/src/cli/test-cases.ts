import { parseDuration } from '@tollgate/kit/time';
import { parseDescriptor } from '@tollgate/rules/descriptor-text';
import type { DescriptorExplanation } from '@tollgate/rules/explain';
import type { Entry } from '@tollgate/rules/match';
import { type RuleSet, type Unit, unitSeconds } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import {
  FieldProblem,
  type Fields,
  type ReadDocument,
  readDocument,
  readFields,
  readText,
  readUint32,
  readWord,
} from '@tollgate/yaml/fields';
import { type SimulatedLimit, SimulatedLimiter } from './simulated-limiter.ts';

const codes = ['OK', 'OVER_LIMIT'] as const;
type CodeName = (typeof codes)[number];

/** Expected result of a descriptor without a limit. */
const outcomes = ['none', 'unlimited', 'replaced'] as const;

/** Expectations of a descriptor; absent fields are not compared. */
interface ExpectedLimit {
  readonly outcome: 'limited' | (typeof outcomes)[number];
  readonly rule?: string | undefined;
  readonly unit?: Unit | undefined;
  readonly period?: string | undefined;
  readonly time_zone?: string | undefined;
  readonly requests_per_unit?: number | undefined;
  readonly remaining?: number | undefined;
  readonly code?: CodeName | undefined;
}

/** A request and its expected decision. */
export interface TestCase {
  readonly name: string;
  readonly line: number;
  readonly domain: string;
  readonly descriptors: readonly { readonly entries: readonly Entry[] }[];
  readonly hitsAddend: number;
  /** How often it is sent; the last decision is compared. */
  readonly times: number;
  readonly code: CodeName | undefined;
  readonly limits: readonly ExpectedLimit[];
}

const caseFields = new Set(['name', 'domain', 'descriptors', 'hits_addend', 'times', 'code', 'limits']);
const limitFields = new Set([
  'rule',
  'unit',
  'period',
  'time_zone',
  'requests_per_unit',
  'remaining',
  'code',
]);

/** A case sends at most this many requests. */
const maxTimes = 100_000;

/** Parses a file of cases; a problem has its line. */
export function parseTestCases(text: string): ReadDocument<readonly TestCase[]> {
  return readDocument(text, (value, lineOf) => {
    const { cases } = readFields(value, '', new Set(['cases']));
    if (!Array.isArray(cases) || cases.length === 0) {
      throw new FieldProblem('cases', 'cases must be a list that is not empty');
    }
    return cases.map((one: unknown, i) => readCase(one, `cases[${i}]`, lineOf(`cases[${i}]`)));
  });
}

function readCase(value: unknown, path: string, line: number): TestCase {
  const fields = readFields(value, path, caseFields);
  const { descriptors, limits = [] } = fields;
  if (!Array.isArray(descriptors) || descriptors.length === 0) {
    throw new FieldProblem(`${path}.descriptors`, 'descriptors must be a list that is not empty');
  }
  if (!Array.isArray(limits) || limits.length > descriptors.length) {
    throw new FieldProblem(`${path}.limits`, 'limits must be a list with one element for each descriptor');
  }
  const times = readUint32(fields, 'times', path) ?? 1;
  if (times < 1 || times > maxTimes) {
    throw new FieldProblem(`${path}.times`, `times must be a whole number from 1 to ${maxTimes}`);
  }
  const code = readWord(fields, 'code', path, codes);
  if (code === undefined && limits.length === 0) {
    throw new FieldProblem(path, 'a case must expect something: code, limits or both');
  }
  return {
    name: readText(fields, 'name', path),
    line,
    domain: readText(fields, 'domain', path),
    descriptors: descriptors.map((one: unknown, i) => readDescriptor(one, `${path}.descriptors[${i}]`)),
    hitsAddend: readUint32(fields, 'hits_addend', path) ?? 1,
    times,
    code,
    limits: limits.map((one: unknown, i) => readLimit(one, `${path}.limits[${i}]`)),
  };
}

/** `key=value,key2=value2`, or a list of `key` and `value` for values with `,` or `=`. */
function readDescriptor(value: unknown, path: string): { readonly entries: readonly Entry[] } {
  if (typeof value === 'string') {
    const parsed = parseDescriptor(value);
    if (!parsed.ok) throw new FieldProblem(path, parsed.problem);
    return { entries: parsed.entries };
  }
  if (!Array.isArray(value) || value.length === 0) {
    throw new FieldProblem(path, 'a descriptor must be key=value,… or a list of key and value');
  }
  const entries = value.map((entry: unknown, i) => {
    const fields = readFields(entry, `${path}[${i}]`, new Set(['key', 'value']));
    const { value: text = '' } = fields;
    if (typeof text !== 'string') {
      throw new FieldProblem(`${path}[${i}].value`, 'value must be text: put it in quotes');
    }
    return { key: readText(fields, 'key', `${path}[${i}]`), value: text };
  });
  return { entries };
}

function readLimit(value: unknown, path: string): ExpectedLimit {
  const outcome = outcomes.find((word) => word === value);
  if (outcome !== undefined) return { outcome };
  if (typeof value === 'string') {
    throw new FieldProblem(path, `a limit must have fields, or be ${outcomes.join(', ')}`);
  }
  const fields = readFields(value, path, limitFields);
  return {
    outcome: 'limited',
    rule: fields.rule === undefined ? undefined : readText(fields, 'rule', path),
    unit: readWord(fields, 'unit', path, Object.keys(unitSeconds) as Unit[]),
    period: readPeriod(fields, path),
    time_zone: fields.time_zone === undefined ? undefined : readText(fields, 'time_zone', path),
    requests_per_unit: readUint32(fields, 'requests_per_unit', path),
    remaining: readUint32(fields, 'remaining', path),
    code: readWord(fields, 'code', path, codes),
  };
}

/** As rules are shown: `300s` is `5m`. */
function readPeriod(fields: Fields, path: string): string | undefined {
  if (fields.period === undefined) return undefined;
  const ms = parseDuration(readText(fields, 'period', path));
  if (ms === undefined) throw new FieldProblem(`${path}.period`, 'period must be a duration such as 5m');
  return formatPeriod(ms / 1000);
}

/** The decision of a case, in the terms of the file. */
export interface CaseResult {
  readonly name: string;
  readonly line: number;
  readonly ok: boolean;
  /** Differences from the expectation. */
  readonly differences: readonly string[];
  readonly code: CodeName;
  readonly limits: readonly Readonly<Record<string, unknown>>[];
}

/** Sends the request of a case to the rules, with counters that start at 0. */
export async function runTestCase(rules: RuleSet, test: TestCase): Promise<CaseResult> {
  const { domain, descriptors, hitsAddend: hits, times, name, line } = test;
  const limiter = new SimulatedLimiter(rules, () => nowMs);
  const request = { domain, descriptors, hits };
  let decision = await limiter.decide(request);
  for (let i = 1; i < times; i += 1) decision = await limiter.decide(request);
  const code = toCode(!decision.allowed);
  const limits = decision.limits.map(toLimit);
  const differences = [
    ...(test.code === undefined || test.code === code ? [] : [`code: expected ${test.code}, got ${code}`]),
    ...test.limits.flatMap((expected, i) => compare(expected, limits[i] ?? {}, decision.limits[i], i)),
  ];
  return { name, line, ok: differences.length === 0, differences, code, limits };
}

/** A fixed time: at the start of the windows of up to a day, so that a case stays within them. */
const nowMs = 1_767_225_600_000;

function toCode(isExceeded: boolean): CodeName {
  return isExceeded ? 'OVER_LIMIT' : 'OK';
}

function toLimit({ outcome, rule, remaining, exceeded }: SimulatedLimit): Fields {
  if (outcome !== 'limited') return { outcome: outcome === 'no_limit' ? 'none' : outcome };
  return {
    outcome,
    rule: rule?.path,
    unit: rule?.unit,
    period: rule?.periodSeconds === undefined ? undefined : formatPeriod(rule.periodSeconds),
    time_zone: rule?.timeZone,
    requests_per_unit: rule?.requestsPerUnit,
    remaining,
    code: toCode(exceeded),
  };
}

function compare(
  expected: ExpectedLimit,
  actual: Fields,
  explanation: DescriptorExplanation | undefined,
  index: number,
): string[] {
  const at = `descriptors[${index}]`;
  if (expected.outcome !== actual.outcome) {
    const because = explanation?.reasons.length ? `: ${explanation.reasons.join('; ')}` : '';
    const rule = actual.rule === undefined ? '' : ` by ${String(actual.rule)}`;
    return [`${at}: expected ${expected.outcome}, got ${String(actual.outcome)}${rule}${because}`];
  }
  return Object.entries(expected).flatMap(([field, value]) =>
    value === undefined || value === actual[field]
      ? []
      : [`${at}.${field}: expected ${value}, got ${String(actual[field] ?? 'none')}`],
  );
}
