import { runSteps } from '@tollgate/rules/steps';
import t from 'tap';
import { audienceOf } from '../../src/domain/audience.ts';
import { groupLimiters } from '../../src/domain/limiter-groups.ts';
import { progressOf } from '../../src/domain/programmed.ts';
import { sameStatus, statusOf } from '../../src/domain/status-of.ts';
import type { Verdict } from '../../src/domain/verdict.ts';
import { limiterOf, versions } from '../support/limiters.ts';

const verdict: Verdict = {
  id: 'ns/a',
  uid: 'u',
  generation: 2,
  label: 'ns/a',
  domain: 'shop',
  inForce: 2,
  rules: 3,
  domainOwner: undefined,
  accepted: { status: 'True', reason: 'Accepted', message: '3 limits' },
};
const invalid: Verdict = { ...verdict, accepted: { status: 'False', reason: 'Invalid', message: 'bad' } };
const progress = progressOf(
  { name: 'shop', version: 'v' },
  runSteps(audienceOf(groupLimiters([limiterOf('a', { accepted: versions({ shop: 'v' }) })]))),
);

t.test('an accepted object is as far as its domain', async (t) => {
  t.strictSame(statusOf(verdict, progress), {
    id: 'ns/a',
    uid: 'u',
    observedGeneration: 2,
    rules: 3,
    version: 'v',
    limiters: { connected: 1, acknowledged: 1 },
    accepted: { status: 'True', reason: 'Accepted', message: '3 limits' },
    programmed: { status: 'True', reason: 'Acknowledged', message: 'acknowledged by 1 of 1 limiter' },
  });
});

t.test('an edit that is not accepted is never programmed, and the status says what is', async (t) => {
  t.match(statusOf({ ...invalid, inForce: 1 }, progress), {
    observedGeneration: 2,
    version: 'v',
    limiters: { acknowledged: 1 },
    programmed: {
      status: 'False',
      reason: 'NotAccepted',
      message: 'generation 1, which stays in force: acknowledged by 1 of 1 limiter',
    },
  });
  t.match(statusOf(invalid, progress).programmed, {
    reason: 'NotAccepted',
    message: 'what is accepted of generation 2: acknowledged by 1 of 1 limiter',
  });
});

t.test('an object of which nothing is in force has no version, whoever has the domain', async (t) => {
  t.match(statusOf({ ...invalid, inForce: undefined, rules: 0 }, progress), {
    version: '',
    limiters: { connected: 1, acknowledged: 0 },
    programmed: { status: 'False', reason: 'NotAccepted', message: 'nothing of this object is in force' },
  });
});

t.test('a status is the same only if all of it is', async (t) => {
  const status = statusOf(verdict, progress);
  t.ok(sameStatus(status, statusOf(verdict, progress)));
  for (const other of [
    { ...verdict, uid: 'other' },
    { ...verdict, generation: 3 },
    { ...verdict, rules: 4 },
    { ...verdict, inForce: undefined },
    invalid,
  ])
    t.notOk(sameStatus(status, statusOf(other, progress)), JSON.stringify(other));
});
