import t from 'tap';
import { parseConfigObject } from '../../src/kube/reflector.ts';
import type { PolicyResult } from '../../src/policies/policy-result.ts';
import type { PolicyObservation } from '../../src/status/policy-conditions.ts';
import { policyEvents } from '../../src/status/policy-events.ts';
import { hasPolicyStatus, policyStatuses, toPolicyStatus } from '../../src/status/policy-status.ts';
import { perUser } from '../support/policies.ts';

const spec = { hosts: ['a.test', 'b.test'], access: { type: 'Public' }, limits: [perUser] };

const makeResult = (given: Partial<PolicyResult> = {}): PolicyResult => ({
  ...{ id: 'shop/a', namespace: 'shop', name: 'a', label: 'shop/a', generation: 1 },
  ...{ problems: [], warnings: [], ancestors: [], heldBack: undefined, allowedHosts: [] },
  inForce: { generation: 1, spec },
  ...given,
});

const acknowledged = { status: 'True', reason: 'Programmed', message: 'acknowledged' } as const;

const observe = (
  given: Partial<PolicyResult> = {},
  rest: Partial<Omit<PolicyObservation, 'result'>> = {},
): PolicyObservation => ({ result: makeResult(given), programmed: acknowledged, isSeen: false, ...rest });

/** `Type=Status/Reason` of conditions. */
const list = (conditions: readonly { type: string; status: string; reason: string }[] = []) =>
  conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);

const gateway = (name: string) => ({
  ...{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'infra', name },
});

const invalid = { source: 'shop/a', field: 'spec.hosts', message: 'is required', reason: 'Invalid' } as const;

t.test('an accepted policy has its columns, and is ready without traffic', (t) => {
  const status = toPolicyStatus(observe(), {}, 0);
  t.match(status, { target: 'a.test,b.test', access: 'Public', limits: 'per-user', observedGeneration: 1 });
  t.match(status.conditions, [{ type: 'Accepted', lastTransitionTime: '1970-01-01T00:00:00Z' }, {}]);
  t.same(list(status.conditions), ['Accepted=True/Accepted', 'Ready=True/Programmed']);
  const [ancestor, ...others] = status.ancestors;
  t.same(others, []);
  t.match(ancestor, {
    ancestorRef: { kind: 'AccessPolicy', name: 'a' },
    controllerName: 'tollgate.dev/policy',
  });
  t.same(list(ancestor?.conditions), [
    ...['Accepted=True/Accepted', 'Programmed=True/Programmed', 'Enforced=Unknown/NoTraffic'],
  ]);
  t.ok(hasPolicyStatus(status, status));
  t.end();
});

t.test('a condition keeps its time while its status stays, and the last valid version stays', (t) => {
  const first = toPolicyStatus(observe(), {}, 0);
  const edited = observe({ generation: 2, problems: [invalid] });
  const second = toPolicyStatus(edited, { status: first }, 60_000);
  t.same(second.lastValid, first.lastValid);
  t.match(second.conditions, [
    { type: 'Accepted', status: 'False', reason: 'Invalid', message: 'spec.hosts: is required' },
    { type: 'Ready', status: 'False', reason: 'Invalid' },
    { type: 'Stalled', status: 'True', reason: 'Invalid' },
  ]);
  t.same(toPolicyStatus(edited, { status: second }, 120_000).conditions, second.conditions);
  t.notOk(hasPolicyStatus(first, second));
  t.end();
});

t.test('a result without a version in force keeps the copy of another server', (t) => {
  const { lastValid } = toPolicyStatus(observe(), {}, 0);
  const unread = observe({ generation: 3, problems: [invalid], inForce: undefined });
  t.same(toPolicyStatus(unread, { status: { lastValid } }, 0).lastValid, lastValid);
  t.match(toPolicyStatus(unread, { spec }, 0), { target: 'a.test,b.test', access: '', limits: '' });
  t.end();
});

t.test('hosts that were allowed are read from the status after a restart', (t) => {
  const status = toPolicyStatus(observe({ allowedHosts: ['a.test'] }), {}, 0);
  const metadata = { name: 'a', namespace: 'shop', uid: '1', generation: 1 };
  t.same(parseConfigObject({ metadata, spec, status }).allowedHosts, ['a.test']);
  t.notOk(hasPolicyStatus(status, toPolicyStatus(observe(), { status }, 0)), 'removed hosts are removed');
  const restored = { ...status, observedGeneration: 2 };
  t.same(parseConfigObject({ metadata, spec, status: restored }).allowedHosts, undefined);
  t.end();
});

t.test('each Gateway has conditions, of which an unenforced one is not ready', (t) => {
  const bypassed = { reason: 'Bypassed', message: 'by SecurityPolicy cors' } as const;
  const ancestors = [{ ref: gateway('a') }, { ref: gateway('b'), unenforced: bypassed }];
  const status = toPolicyStatus(observe({ ancestors }, { isSeen: true }), {}, 0);
  t.match(status.ancestors, [{ ancestorRef: gateway('b') }, { ancestorRef: gateway('a') }]);
  t.same(
    status.ancestors.map(({ conditions }) => list(conditions)[2]),
    ['Enforced=False/Bypassed', 'Enforced=True/Enforced'],
  );
  t.match(status.ancestors[1]?.conditions[2], { message: / with this policy, from one of its Gateways$/ });
  t.same(list(status.conditions), [
    ...['Accepted=True/Accepted', 'Ready=False/Bypassed', 'Stalled=True/Bypassed'],
  ]);
  const later = toPolicyStatus(observe({ ancestors }, { isSeen: true }), { status }, 60_000);
  t.same(later, status, 'times of conditions of ancestors stay');
  t.end();
});

t.test('a policy that others replace or override says so, and is ready', (t) => {
  const ancestors = [
    { ref: gateway('a'), replaced: { reason: 'Overridden', message: 'by AccessPolicy shop/b' } as const },
    { ref: gateway('b'), replaced: { reason: 'PartiallyProgrammed', message: 'by shop/c' } as const },
    { ref: gateway('c'), overridden: 'overrides of shop/d hold' },
  ];
  const status = toPolicyStatus(observe({ ancestors }), {}, 0);
  t.same(
    status.ancestors.map(({ conditions }) => list(conditions).filter((one) => !/^(Acc|Enf)/.test(one))),
    [
      ['Programmed=False/Overridden'],
      ['Programmed=True/PartiallyProgrammed'],
      ['Programmed=True/Programmed', 'Overridden=True/Overridden'],
    ],
  );
  t.match(status.ancestors[1]?.conditions[1], { message: 'acknowledged; by shop/c' });
  t.match(status.ancestors[2]?.conditions[3], { message: 'overrides of shop/d hold' });
  t.same(list(status.conditions).slice(1), ['Ready=True/Programmed']);
  const pending = { status: 'False', reason: 'Pending', message: 'm' } as const;
  const early = toPolicyStatus(observe({ ancestors }, { programmed: pending }), {}, 0);
  t.same(list(early.ancestors[0]?.conditions)[1], 'Programmed=False/Pending');
  t.end();
});

t.test('at most 16 ancestors are listed, and those with a problem come first', (t) => {
  const names = Array.from({ length: 20 }, (_, index) => String.fromCharCode(97 + index));
  const ancestors = names.map((name) => ({
    ref: gateway(name),
    ...(name === 't' && { unenforced: { reason: 'NotAttached', message: 'no extAuth' } as const }),
  }));
  const listed = toPolicyStatus(observe({ ancestors }), {}, 0).ancestors;
  t.equal(listed.length, 16);
  t.match(listed[0], { ancestorRef: gateway('t') });
  t.end();
});

t.test('Reconciling is for what ends by itself, Stalled for what an owner has to change', (t) => {
  const listOf = (status: 'False' | 'Unknown', reason: string) =>
    list(toPolicyStatus(observe({}, { programmed: { status, reason, message: 'm' } }), {}, 0).conditions);
  t.same(listOf('False', 'Pending').slice(1), ['Ready=False/Pending', 'Reconciling=True/Pending']);
  t.same(listOf('Unknown', 'NoClients').slice(1), ['Ready=Unknown/NoClients', 'Reconciling=True/NoClients']);
  t.same(listOf('False', 'Nacked').slice(1), ['Ready=False/Nacked', 'Stalled=True/Nacked']);
  t.end();
});

t.test('a status that another replica wrote says more while clients reconnect', (t) => {
  const { isBehind } = policyStatuses;
  const status = toPolicyStatus(observe({ ancestors: [{ ref: gateway('a') }] }), {}, 0);
  const programmed = { status: 'False', reason: 'Pending', message: 'just started' } as const;
  const starting = { programmed, isProvisional: true };
  t.equal(isBehind(observe({}, starting), status), true);
  t.equal(isBehind(observe({}, { programmed }), status), false, 'once it is known');
  t.equal(isBehind(observe({ generation: 2 }, starting), status), false, 'an edited policy');
  t.equal(isBehind(observe({}, starting), {}), false, 'a new policy');
  t.end();
});

t.test('a policy whose owner has to act has an event', (t) => {
  const { toEvent } = policyEvents((id) => (id === 'shop/a' ? 'uid-1' : undefined));
  const bypassed = { reason: 'Bypassed', message: 'by SecurityPolicy cors' } as const;
  const ancestors = [{ ref: gateway('a') }, { ref: gateway('b'), unenforced: bypassed }];
  const programmed = (status: 'False' | 'Unknown', reason: string, message = 'm') => ({
    programmed: { status, reason, message },
  });
  t.equal(toEvent(observe()), undefined, 'no traffic yet');
  t.equal(toEvent(observe({}, programmed('False', 'Pending'))), undefined);
  t.equal(toEvent(observe({}, programmed('Unknown', 'NoClients'))), undefined);
  t.equal(toEvent(observe({ id: 'shop/deleted', ancestors })), undefined);
  const pending = observe({ ancestors }, programmed('False', 'Pending'));
  for (const observation of [observe({ ancestors }), pending])
    t.match(toEvent(observation), {
      ...{ uid: 'uid-1', action: 'Enforce', reason: 'Bypassed', note: 'by SecurityPolicy cors' },
    });
  t.match(toEvent(observe({ ancestors, problems: [invalid] })), {
    ...{ action: 'Accept', reason: 'Invalid', note: 'spec.hosts: is required' },
  });
  const refused = toEvent(observe({}, programmed('False', 'Nacked')));
  t.match(refused, { action: 'Program', reason: 'Nacked', note: 'm' });
  t.equal(toEvent(observe({}, programmed('False', 'Nacked', 'another server')))?.key, refused?.key);
  t.not(toEvent(observe({ generation: 2 }, programmed('False', 'Nacked')))?.key, refused?.key);
  t.end();
});
