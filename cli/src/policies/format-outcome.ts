import type { LimitOutcome } from './limit-simulator.ts';
import type { Outcome } from './simulator.ts';

/** The decision in one line. */
export function formatOutcome({ allowed, status, reason, message, policy, rule }: Outcome): string {
  const decision = allowed ? 'allowed' : `${status} ${reason}`;
  if (message !== undefined) return `${decision}: ${message}`;
  return `${decision}, policy ${policy}, rule ${rule}`;
}

const states: Readonly<Record<LimitOutcome['state'], string>> = {
  ok: '',
  exceeded: 'exceeded, ',
  unlimited: 'unlimited',
  not_counted: 'does not count the request: it lacks an attribute that the limit counts by',
  on_trial: 'on trial, does not decide',
  no_rule: 'has no number in these files',
};

/** The state of a limit and its counter. */
export function formatLimit({ state, requests, per, remaining, resetSeconds }: LimitOutcome): string {
  if (requests === undefined) return states[state];
  return `${states[state]}${remaining} of ${requests} per ${per} left, reset in ${resetSeconds} s`;
}
