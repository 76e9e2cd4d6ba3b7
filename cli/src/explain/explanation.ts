import { isMapping } from '@tollgate/rules/resource-fields';
import { formatLimit } from '../policies/format-outcome.ts';
import type { Outcome } from '../policies/simulator.ts';

/** How a request is decided, ready to be printed. */
export interface Explanation {
  readonly caller: string;
  /** Rules of routes that take the request. */
  readonly routes: readonly string[];
  readonly policies: readonly ExplainedPolicy[];
  readonly answer: string;
  readonly status: number;
}

interface ExplainedPolicy {
  readonly name: string;
  readonly rule: string;
  /** Why the policy applies, or the line that decided. */
  readonly reason: string;
  /** The conditions on callers, and whether this one meets them. */
  readonly access: string;
  readonly limits: readonly { readonly name: string; readonly state: string }[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads the answer of `POST /admin/policies/explain`. */
export function readExplanation(answer: Fields): Explanation {
  const { caller, route, policies, decision, reason } = answer;
  const decided = toFields(decision);
  const hits = toList(toFields(route).hits);
  return {
    caller: isMapping(caller) ? formatCaller(caller) : '-',
    routes: hits.map(({ kind, namespace, name, section_name: section }) =>
      [`${kind} ${namespace}/${name}`, ...(section === undefined ? [] : [`section ${section}`])].join(', '),
    ),
    policies: toList(policies).map(readPolicy),
    answer: [formatDecision(decided), ...(reason === undefined ? [] : [String(reason)])].join('; '),
    status: Number(decided.status),
  };
}

function readPolicy(policy: Fields): ExplainedPolicy {
  const { name, rule, reason, access, allows, error_code: code, message, limits } = policy;
  const result = allows === true ? 'allows' : `denies: ${String(code)}, ${String(message)}`;
  return {
    ...{ name: String(name), rule: String(rule), reason: String(reason) },
    access: `${formatFields(toFields(access))}: ${result}`,
    limits: toList(limits).map(readLimit),
  };
}

function readLimit({ name, by, state, mode, requests, unit, remaining, reset_seconds: reset }: Fields) {
  const counter =
    requests === undefined
      ? ''
      : `, ${String(remaining)} of ${String(requests)} per ${String(unit).toLowerCase()} left, reset in ${String(reset)} s`;
  const ofMode = mode === undefined ? '' : ` (${String(mode)})`;
  return { name: String(name ?? by), state: `${String(state)}${ofMode}${counter}` };
}

/** The decision of local files in the same form. */
export function describeOutcome(outcome: Outcome, caller: string): Explanation {
  const { policy, rule, reason, message, decidedBy, limits, allowed, status } = outcome;
  const denial =
    reason === undefined || reason === 'over_request_rate_limit' ? 'allows' : `denies: ${reason}`;
  const explained: ExplainedPolicy = {
    ...{ name: policy, rule },
    reason: decidedBy === undefined ? '' : `${decidedBy.file}:${decidedBy.line}: ${decidedBy.text}`,
    access: denial,
    limits: limits.map((limit) => ({ name: limit.name, state: formatLimit(limit) })),
  };
  return {
    ...{ caller, status, routes: [], policies: policy === '' ? [] : [explained] },
    answer: allowed
      ? `${status}, allowed`
      : [`${status} ${reason}`, ...(message ? [message] : [])].join(': '),
  };
}

function formatCaller({ problem, message, ...attributes }: Fields): string {
  return problem === undefined ? formatFields(attributes) : `${String(problem)}: ${String(message)}`;
}

function formatDecision({ allowed, status, error_code: code, message }: Fields): string {
  if (allowed === true) return `${String(status)}, allowed`;
  return [[status, code].filter((text) => text !== undefined).join(' '), ...(message ? [message] : [])].join(
    ': ',
  );
}

function formatFields(fields: Fields): string {
  const texts = Object.entries(fields).map(([name, value]) => {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
    return name === 'type' ? text : `${name} ${Array.isArray(value) ? value.join(', ') : text}`;
  });
  return texts.join('; ');
}

const toFields = (value: unknown): Fields => (isMapping(value) ? value : {});

const toList = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(toFields) : []);
