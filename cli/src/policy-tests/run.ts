import { parseDuration, parseInstant } from '@tollgate/kit/time';
import type { LoadedPolicies } from '@tollgate/policies/files/load';
import {
  type Outcome,
  PolicySimulator,
  type SimulatedRequest,
  SimulationProblem,
} from '../policies/simulator.ts';
import { toIdentity } from './callers.ts';
import { compareDecision, compareLimits, type Difference } from './expectation.ts';
import type { PolicyTest, TestStep } from './read.ts';

/** The first step that differs, or cannot be run. */
export interface FailedStep {
  /** Counts from 1. */
  readonly number: number;
  readonly step: TestStep;
  /** Number of the request among equal ones, from 1. */
  readonly repetition: number;
  readonly differences: readonly Difference[];
  /** Absent where the question cannot be answered. */
  readonly outcome?: Outcome;
  readonly problem?: string;
}

export interface TestResult {
  readonly name: string;
  readonly line: number;
  readonly failed: FailedStep | undefined;
}

/** Tests start at the beginning of the windows of up to a year. */
const startMs = Date.parse('2026-01-01T00:00:00Z');

/** Runs a test with counters that start at 0, up to the first step that fails. */
export async function runTest(
  loaded: LoadedPolicies,
  { name, line, steps }: PolicyTest,
): Promise<TestResult> {
  let nowMs = startMs;
  const simulator = new PolicySimulator(loaded, () => nowMs);
  for (const [index, step] of steps.entries()) {
    const { after = '', at = '' } = step.spec;
    const timeMs = parseInstant(at)?.getTime() ?? nowMs;
    if (timeMs < nowMs) {
      const problem = `at is before ${new Date(nowMs).toISOString()}, where the step before ended`;
      return { name, line, failed: { number: index + 1, step, repetition: 1, differences: [], problem } };
    }
    nowMs = timeMs + (parseDuration(after) ?? 0);
    const failed = step.url === '' ? undefined : await runStep(simulator, step);
    if (failed !== undefined) return { name, line, failed: { number: index + 1, ...failed } };
  }
  return { name, line, failed: undefined };
}

async function runStep(
  simulator: PolicySimulator,
  step: TestStep,
): Promise<Omit<FailedStep, 'number'> | undefined> {
  const { times = 1, expect = {} } = step.spec;
  const request = toRequest(step);
  for (let repetition = 1; repetition <= times; repetition += 1) {
    const outcome = await decide(simulator, request);
    if (typeof outcome === 'string') return { step, repetition, differences: [], problem: outcome };
    const ofLimits = repetition === times ? compareLimits(expect, outcome) : [];
    const differences = [...compareDecision(expect, outcome), ...ofLimits];
    if (differences.length > 0) return { step, repetition, differences, outcome };
  }
  return undefined;
}

function toRequest({ spec, method, url, caller }: TestStep): SimulatedRequest {
  const { headers = {}, address = '192.0.2.1', policy } = spec;
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    ...{ method, url, address, policy, headers: Object.fromEntries(named) },
    caller: caller && toIdentity(caller),
  };
}

/** The decision, or why there is none. */
async function decide(simulator: PolicySimulator, request: SimulatedRequest): Promise<Outcome | string> {
  try {
    return await simulator.decide(request);
  } catch (error) {
    if (!(error instanceof SimulationProblem)) throw error;
    return error.message;
  }
}
