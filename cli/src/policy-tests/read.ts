import { parseDuration, parseInstant } from '@tollgate/kit/time';
import type { PolicyDocument } from '@tollgate/policies/files/documents';
import type { Finding } from '@tollgate/policies/files/finding';
import { Value } from 'typebox/value';
import { checkForm, type Report } from './check-form.ts';
import { type CallerSpec, type StepSpec, type TestSpec, testFile } from './format.ts';

/** A step of a test, with everything that it needs. */
export interface TestStep {
  readonly spec: StepSpec;
  /** Empty without a request: time passes. */
  readonly method: string;
  readonly url: string;
  /** Name of the caller. */
  readonly as: string | undefined;
  readonly caller: CallerSpec | undefined;
  readonly line: number;
}

export interface PolicyTest {
  readonly name: string;
  readonly line: number;
  readonly steps: readonly TestStep[];
}

type ReadTests =
  | { readonly ok: true; readonly policies: readonly string[]; readonly tests: readonly PolicyTest[] }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** Reads a file of tests, or finds everything that is wrong with it. */
export function readTests({ source, value, positionOf }: PolicyDocument): ReadTests {
  const findings: Finding[] = [];
  const report: Report = (field, message) => {
    const { line, column } = positionOf(field);
    findings.push({ severity: 'problem', file: source.path, line, column, field, message });
  };
  if (!Value.Check(testFile, value)) {
    checkForm(value, report);
    return { ok: false, findings };
  }
  const { callers = {}, policies } = value;
  for (const [name, caller] of Object.entries(callers)) checkCaller(`callers.${name}`, caller, report);
  const tests = value.tests.map((test, index): PolicyTest => {
    const path = `tests[${index}]`;
    checkName(test.as, path, { callers, report });
    const steps = listSteps(test, path, report).map(
      ([field, spec]): TestStep => ({
        ...toStep(spec, field, { test, callers, report }),
        line: positionOf(`${field}.request`).line,
      }),
    );
    return { name: test.name, line: positionOf(`${path}.name`).line, steps };
  });
  return findings.length > 0 ? { ok: false, findings } : { ok: true, policies, tests };
}

function checkCaller(
  field: string,
  { user, apiKey, client, anonymous = false }: CallerSpec,
  report: Report,
): void {
  if (user === undefined && apiKey === undefined && client === undefined)
    report(field, 'needs one of user, apiKey and client; a request without `as` has no credential');
  if (apiKey !== undefined && client !== undefined)
    report(`${field}.client`, 'cannot be combined with apiKey; remove either');
  if (anonymous && user === undefined) report(`${field}.anonymous`, 'needs user: only users are anonymous');
}

/** Members of a test that its steps have by default. */
const defaults: ReadonlySet<string> = new Set(['as', 'policy', 'address']);

function listSteps(test: TestSpec, field: string, report: Report): readonly (readonly [string, StepSpec])[] {
  const { name: _, steps, ...own } = test;
  if (steps === undefined) return [[field, own]];
  for (const key of Object.keys(own))
    if (!defaults.has(key)) report(`${field}.${key}`, 'belongs into a step: the test has steps');
  return steps.map((step, index) => [`${field}.steps[${index}]`, step]);
}

interface StepContext {
  readonly test: TestSpec;
  readonly callers: Readonly<Record<string, CallerSpec>>;
  readonly report: Report;
}

function toStep(
  spec: StepSpec,
  field: string,
  { test, callers, report }: StepContext,
): Omit<TestStep, 'line'> {
  checkStep(spec, field, report);
  if (test.steps !== undefined) checkName(spec.as, field, { callers, report });
  const { as = test.as, policy = test.policy, address = test.address, request = '' } = spec;
  const caller = as !== undefined && Object.hasOwn(callers, as) ? callers[as] : undefined;
  const [method = '', url = ''] = request.split(' ', 2);
  const own = { ...spec, ...(policy !== undefined && { policy }), ...(address !== undefined && { address }) };
  return { spec: own, method, url, as, caller };
}

function checkName(
  as: string | undefined,
  field: string,
  { callers, report }: Omit<StepContext, 'test'>,
): void {
  if (as === undefined || Object.hasOwn(callers, as)) return;
  const known = Object.keys(callers).join(', ') || 'none';
  report(`${field}.as`, `no caller is named ${as}: callers has ${known}`);
}

function checkStep({ request, expect, after, at }: StepSpec, field: string, report: Report): void {
  if (request === undefined && (expect !== undefined || (after === undefined && at === undefined)))
    report(`${field}.request`, 'is required: a method and a URL');
  if (request !== undefined && expect === undefined)
    report(`${field}.expect`, 'is required: allowed: true if the request only prepares the next one');
  if (after !== undefined && parseDuration(after) === undefined)
    report(`${field}.after`, 'must be a duration such as 30s or 1h');
  if (at !== undefined && parseInstant(at) === undefined)
    report(`${field}.at`, 'must be a time such as 2026-01-01T12:00:00Z');
}
