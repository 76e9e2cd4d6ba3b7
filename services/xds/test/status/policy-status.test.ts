import t from 'tap';
import { parseConfigObject } from '../../src/kube/reflector.ts';
import type { PolicyResult } from '../../src/policies/policy-result.ts';
import { hasPolicyStatus, toPolicyStatus } from '../../src/status/policy-status.ts';
import { perUser } from '../support/policies.ts';

const spec = { hosts: ['a.test', 'b.test'], access: { type: 'Public' }, limits: [perUser] };

const makeResult = (given: Partial<PolicyResult> = {}): PolicyResult => ({
  ...{ id: 'shop/a', namespace: 'shop', name: 'a', label: 'shop/a', generation: 1 },
  ...{ problems: [], warnings: [], ancestors: [], heldBack: undefined, allowedHosts: [] },
  inForce: { generation: 1, spec },
  ...given,
});

const invalid = { source: 'shop/a', field: 'spec.hosts', message: 'is required', reason: 'Invalid' } as const;

t.test('an accepted policy has its columns, and no condition Ready', (t) => {
  const status = toPolicyStatus(makeResult(), undefined, 0);
  t.match(status, { target: 'a.test,b.test', access: 'Public', limits: 'per-user', observedGeneration: 1 });
  t.match(status.conditions, [
    { type: 'Accepted', status: 'True', lastTransitionTime: '1970-01-01T00:00:00Z' },
  ]);
  t.equal(status.conditions.length, 1);
  t.ok(hasPolicyStatus(status, status));
  t.end();
});

t.test('a condition keeps its time while its status stays, and the last valid version stays', (t) => {
  const first = toPolicyStatus(makeResult(), undefined, 0);
  const edited = makeResult({ generation: 2, problems: [invalid] });
  const second = toPolicyStatus(edited, first, 60_000);
  t.same(second.lastValid, first.lastValid);
  t.match(second.conditions, [
    { type: 'Accepted', status: 'False', reason: 'Invalid', message: 'spec.hosts: is required' },
    { type: 'Ready', status: 'False', reason: 'Invalid' },
    { type: 'Stalled', status: 'True', reason: 'Invalid' },
  ]);
  t.same(toPolicyStatus(edited, second, 120_000).conditions, second.conditions);
  t.notOk(hasPolicyStatus(first, second));
  t.end();
});

t.test('a result without a version in force keeps the copy of another server', (t) => {
  const { lastValid } = toPolicyStatus(makeResult(), undefined, 0);
  const unread = makeResult({ generation: 3, problems: [invalid], inForce: undefined });
  t.same(toPolicyStatus(unread, { lastValid }, 0).lastValid, lastValid);
  t.end();
});

t.test('hosts that were allowed are read from the status after a restart', (t) => {
  const status = toPolicyStatus(makeResult({ allowedHosts: ['a.test'] }), undefined, 0);
  const metadata = { name: 'a', namespace: 'shop', uid: '1', generation: 1 };
  t.same(parseConfigObject({ metadata, spec, status }).allowedHosts, ['a.test']);
  t.notOk(hasPolicyStatus(status, toPolicyStatus(makeResult(), status, 0)), 'removed hosts are removed');
  const restored = { ...status, observedGeneration: 2 };
  t.same(parseConfigObject({ metadata, spec, status: restored }).allowedHosts, undefined);
  t.end();
});
