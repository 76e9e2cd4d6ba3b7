import { compareText } from '@tollgate/kit/text';
import { runSteps } from '@tollgate/kit/time';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import type { SnapshotStore } from '../src/catalog/snapshot.ts';
import type { SourceEvent } from '../src/catalog/source.ts';
import { memoryHold } from '../src/deletions.ts';
import type { StoredStatus } from '../src/status/status-manifest.ts';
import { changed, deleted, getLimits, replaced } from './support/catalogs.ts';
import { makeLimiter, makeRejection, makeSnapshot, versions } from './support/limiters.ts';
import { badSpec, makeObject } from './support/manifests.ts';
import { startPipeline } from './support/start-pipeline.ts';

/** Versions of all resources. */
const getAccepted = (store: SnapshotStore): ReadonlyMap<string, string> =>
  new Map([...(store.current()?.resources.values() ?? [])].map(({ name, version }) => [name, version]));

t.test('nothing is served before the source has synced', async (t) => {
  const { tell, settle, store, pipeline } = await startPipeline(t);
  t.match(pipeline.notReadyReason(), /the source has not synced/);
  tell(changed(makeObject('ns/a')));
  await settle();
  t.equal(store.current(), undefined);
  tell(replaced(makeObject('ns/a')));
  await settle();
  t.strictSame([...(store.current()?.resources.keys() ?? [])], ['shop']);
  t.equal(pipeline.notReadyReason(), undefined);
  t.match(pipeline.state(), { synced: true, lastEventMs: 5_000, rules: 1 });
});

t.test('rules of policies are served with the others, and nothing before them', async (t) => {
  const policiesMissingReason = () => 'access policies have not been read yet';
  const { tell, settle, store, pipeline } = await startPipeline(t, { policiesMissingReason });
  const getDomains = () => store.current() && [...(store.current()?.resources.keys() ?? [])];
  tell(replaced(makeObject('ns/a')));
  await settle();
  t.equal(getDomains(), undefined);
  t.equal(pipeline.notReadyReason(), 'access policies have not been read yet');
  pipeline.setPolicyRules(makeSnapshot('1', { 'policy/shop/a': '1' }));
  t.strictSame(getDomains(), ['policy/shop/a', 'shop']);
  tell(deleted('ns/a'));
  await settle();
  t.strictSame(getDomains(), ['policy/shop/a']);
  pipeline.setPolicyRules(makeSnapshot('2', {}));
  t.strictSame(getDomains(), []);
});

t.test('burst of changes becomes one snapshot with the last state', async (t) => {
  const { tell, settle, served, store } = await startPipeline(t);
  tell(replaced());
  await settle();
  for (let i = 1; i <= 1_000; i += 1)
    tell(
      changed(
        makeObject(`ns/${i % 50}`, {
          domain: `d${i % 50}`,
          generation: i,
          rules: [{ key: 'k', requestsPerUnit: i }],
        }),
      ),
    );
  await settle();
  t.equal(served.length, 2, 'the empty one and that of the burst');
  const snapshot = store.current();
  t.strictSame(
    snapshot && getLimits(snapshot),
    Array.from({ length: 50 }, (_, i) => `d${i}.k ${950 + (i === 0 ? 50 : i)}`).sort(compareText),
  );
});

t.test('change without effect makes no snapshot', async (t) => {
  const { tell, settle, served } = await startPipeline(t);
  tell(replaced(makeObject('ns/a')));
  await settle();
  tell(changed(makeObject('ns/b', { spec: badSpec })), changed(makeObject('ns/c')), deleted('ns/c'));
  await settle();
  t.equal(served.length, 1);
});

t.test('status is written only when it changes', async (t) => {
  const { tell, settle, written, limiters, forgotten, store } = await startPipeline(t);
  tell(replaced(makeObject('ns/a', { domain: 'a' }), makeObject('ns/b', { domain: 'b', spec: badSpec })));
  await settle();
  t.strictSame(
    written.splice(0).map(({ id, accepted, programmed }) => `${id} ${accepted.reason} ${programmed.reason}`),
    ['ns/b Invalid NotAccepted', 'ns/a Accepted NoClients'],
  );
  const snapshot = store.current();
  const accepted = new Map(
    [...(snapshot?.resources.values() ?? [])].map(({ name, version }) => [name, version]),
  );
  limiters.put(makeLimiter('1', { accepted }));
  await settle();
  t.match(written.splice(0), [{ id: 'ns/a', programmed: { reason: 'Acknowledged' } }]);
  limiters.put(makeLimiter('1', { accepted, connectedMs: 7 }));
  await settle();
  t.strictSame(written, [], 'nothing of a limiter that says nothing new');
  tell(deleted('ns/b'));
  await settle();
  t.strictSame(forgotten, ['ns/b']);
  t.strictSame(written, []);
});

t.test('limiters that join and leave cause no status write', async (t) => {
  const { tell, settle, written, limiters, store, time, pipeline } = await startPipeline(t);
  tell(replaced(makeObject('ns/a'), makeObject('ns/b', { domain: 'b', spec: badSpec })));
  await settle();
  const accepted = getAccepted(store);
  limiters.put(makeLimiter('1', { accepted }));
  time.advance(100);
  t.match(written.splice(0).at(-1), { programmed: { reason: 'Acknowledged' } });
  limiters.put(makeLimiter('2'));
  time.advance(100);
  // It counts although it has not answered.
  time.advance(5_000);
  time.advance(100);
  t.match(pipeline.state().limitersOf({ domain: 'shop' }), { connected: 2, acknowledged: 1 });
  limiters.put(makeLimiter('2', { accepted }));
  time.advance(100);
  for (const id of ['1', '2']) limiters.remove(id);
  time.advance(100);
  time.advance(60_000);
  t.match(pipeline.state().limitersOf({ domain: 'shop' }), { connected: 0 });
  t.strictSame(written, []);
});

/** The status that objects have from an earlier process. */
const storedAs = (stored: Readonly<Record<string, Partial<StoredStatus>>>) => (id: string) => ({
  observedGeneration: 1,
  version: '',
  isProgrammed: true,
  ...stored[id],
});

t.test('restart changes no status of an object that limiters have acknowledged before', async (t) => {
  const objects = replaced(makeObject('ns/a', { domain: 'a' }), makeObject('ns/b', { domain: 'b' }));
  const former = await startPipeline(t);
  former.tell(objects);
  await former.settle();
  const version = getAccepted(former.store);
  const { tell, settle, written, pipeline, time, limiters } = await startPipeline(t, {
    startGraceMs: 5_000,
    stored: storedAs({
      'ns/a': { version: version.get('a') },
      'ns/b': { version: version.get('b'), isProgrammed: false },
    }),
  });
  tell(objects);
  await settle();
  t.match(pipeline.state().statuses.get('ns/a')?.programmed, { status: 'True' });
  t.strictSame(
    written.splice(0).map(({ id }) => id),
    ['ns/a'],
    'the writer compares it with the status of the object',
  );
  limiters.put(makeLimiter('1', { accepted: version }));
  time.advance(100);
  t.strictSame(written, [], 'others may not have reconnected');
  time.advance(5_000);
  time.advance(100);
  t.match(written, [{ id: 'ns/b', programmed: { status: 'True' } }]);
});

t.test('object that was edited during a restart has a status at once', async (t) => {
  const { tell, settle, written, time } = await startPipeline(t, {
    startGraceMs: 5_000,
    stored: storedAs({ 'ns/a': { version: 'old' } }),
  });
  tell(replaced(makeObject('ns/a', { generation: 2 })));
  await settle();
  t.match(written.splice(0), [
    {
      observedGeneration: 2,
      accepted: { status: 'True' },
      programmed: { reason: 'Pending' },
      isProvisional: true,
    },
  ]);
  time.advance(5_000);
  time.advance(100);
  t.match(written, [{ programmed: { reason: 'NoClients' }, isProvisional: undefined }]);
});

t.test('start ends when as many limiters have answered as an earlier process had', async (t) => {
  const { tell, settle, written, limiters, store, setFormer, time, edits } = await startPipeline(t, {
    hasReplicas: true,
    startGraceMs: 5_000,
    stored: storedAs({ 'ns/a': { version: 'old' } }),
  });
  setFormer(2);
  tell(replaced(makeObject('ns/a', { generation: 2 })));
  await settle();
  limiters.put(makeLimiter('1', { accepted: getAccepted(store) }));
  limiters.put(makeLimiter('2'));
  time.advance(100);
  t.match(written.splice(0), [{ programmed: { reason: 'Pending' } }], 'one has not answered');
  limiters.put(makeLimiter('2', { accepted: getAccepted(store) }));
  time.advance(100);
  t.match(written, [{ programmed: { reason: 'Acknowledged' } }]);
  t.strictSame(edits, ['ns/a Pending', 'ns/a Acknowledged'], 'the owner has waited since before the start');
});

t.test('start does not end early when the earlier process had no limiters', async (t) => {
  const { tell, settle, written, setFormer } = await startPipeline(t, {
    hasReplicas: true,
    startGraceMs: 5_000,
  });
  setFormer(0);
  tell(replaced(makeObject('ns/a')));
  await settle();
  t.match(written, [{ programmed: { reason: 'Pending', message: /has just started/ } }]);
});

t.test('status of an edit is marked until its owner need not wait any longer', async (t) => {
  const { tell, settle, edits, limiters, store } = await startPipeline(t);
  tell(replaced(makeObject('ns/a', { domain: 'a' })));
  await settle();
  const accepted = getAccepted(store);
  limiters.put(makeLimiter('1', { accepted }));
  await settle();
  t.strictSame(edits.splice(0), [], 'neither the first status, nor that of the first limiter');
  const rules = [{ key: 'k', requestsPerUnit: 7 }];
  tell(changed(makeObject('ns/a', { domain: 'a', generation: 2, rules })), changed(makeObject('ns/b')));
  await settle();
  limiters.put(makeLimiter('1', { accepted: getAccepted(store) }));
  await settle();
  t.strictSame(edits, ['ns/a Pending', 'ns/b Pending', 'ns/a Acknowledged', 'ns/b Acknowledged']);
});

t.test('rejection is in the status of the object whose domain it names', async (t) => {
  const { tell, settle, limiters, store, pipeline } = await startPipeline(t);
  tell(replaced(makeObject('ns/a', { domain: 'a' }), makeObject('ns/b', { domain: 'b' })));
  await settle();
  const refused = new Map(
    [...(store.current()?.resources.values() ?? [])].map(({ name, version }) => [name, version]),
  );
  limiters.put(makeLimiter('1', { rejection: makeRejection(refused, 'b: no') }));
  await settle();
  const { statuses } = pipeline.state();
  t.match(statuses.get('ns/b')?.programmed, {
    reason: 'Nacked',
    message: 'refused by limiter-1: b: no',
  });
  t.match(statuses.get('ns/a')?.programmed.reason, 'Pending');
});

t.test('simultaneous acknowledgements cause one report', async (t) => {
  const { tell, settle, limiters, time } = await startPipeline(t);
  tell(replaced(makeObject('ns/a')));
  await settle();
  for (let i = 0; i < 500; i += 1) limiters.put(makeLimiter(`${i}`, { accepted: versions({ shop: '1' }) }));
  t.equal(time.waiting, 1);
});

t.test('empty set is served with a warning when allowed', async (t) => {
  const { tell, settle, store, lines } = await startPipeline(t);
  tell(replaced(makeObject('ns/a')));
  await settle();
  tell(deleted('ns/a'));
  await settle();
  t.equal(store.current()?.resources.size, 0);
  t.match(lines.at(-1), {
    level: 'warning',
    '@message': 'no rules left, limiters lift all limits',
  });
});

t.test('with allowEmpty false limiters keep their last set until there is a rule again', async (t) => {
  const { tell, settle, store, lines, pipeline, registry } = await startPipeline(t, { allowEmpty: false });
  tell(replaced());
  await settle();
  t.equal(store.current(), undefined, 'limiters of an earlier process receive nothing, either');
  t.match(pipeline.notReadyReason(), /XDS_ALLOW_EMPTY=false/);
  tell(changed(makeObject('ns/a')));
  await settle();
  t.equal(pipeline.notReadyReason(), undefined);
  const before = store.current();
  tell(deleted('ns/a'));
  await settle();
  t.equal(store.current(), before);
  t.ok(pipeline.state().emptyHeldBack);
  t.match(lines.at(-1), { level: 'warning', '@message': /limiters keep their limits/ });
  t.match(await registry.metrics(), /tollgate_xds_empty_set_held_back 1/);
  t.match(await registry.metrics(), /tollgate_xds_rules 1\n/, 'limiters have it still');
  t.equal(pipeline.state().rules, 1);
  tell(changed(makeObject('ns/b', { domain: 'b' })));
  await settle();
  t.strictSame([...(store.current()?.resources.keys() ?? [])], ['b']);
  t.notOk(pipeline.state().emptyHeldBack);
});

t.test('failed batch is retried with the changes since', async (t) => {
  const { tell, settle, time, store, lines } = await startPipeline(t);
  const objects = [makeObject('ns/a', { domain: 'a' }), makeObject('ns/b', { domain: 'b' })];
  let failures = 1;
  tell({
    type: 'replaced',
    get objects() {
      if (failures-- > 0) throw new Error('no memory left');
      return objects;
    },
    problems: [],
  });
  time.advance(5);
  await awaitUntil(() => time.waiting > 0, { what: 'another attempt to be planned', everyMs: 1 });
  t.match(lines.at(-1), { level: 'error', '@message': 'failed to apply changes, retrying', events: 1 });
  t.equal(store.current(), undefined);
  tell(deleted('ns/b'));
  time.advance(4_995);
  await settle();
  t.strictSame([...(store.current()?.resources.keys() ?? [])], ['a']);
});

t.test('metrics count objects by reason, domains, rules and events', async (t) => {
  const { tell, settle, registry } = await startPipeline(t);
  tell(
    replaced(
      makeObject('a/1', { createdMs: 1 }),
      makeObject('a/2', { createdMs: 2 }),
      makeObject('b/1', { createdMs: 3 }),
      makeObject('c/1', { spec: badSpec }),
    ),
  );
  await settle();
  const metrics = await registry.metrics();
  for (const line of [
    'tollgate_xds_objects{reason="Accepted"} 1',
    'tollgate_xds_objects{reason="DuplicateKey"} 1',
    'tollgate_xds_objects{reason="DomainConflict"} 1',
    'tollgate_xds_objects{reason="Invalid"} 1',
    'tollgate_xds_domains 1',
    'tollgate_xds_rules 1',
    'tollgate_xds_source_synced 1',
    'tollgate_xds_source_last_event_timestamp_seconds 5',
    'tollgate_xds_source_events_total{type="replaced"} 1',
  ])
    t.ok(metrics.split('\n').includes(line), line);
});

t.test('object that is not accepted is logged once with its file until it changes', async (t) => {
  const { tell, settle, lines } = await startPipeline(t);
  const bad = makeObject('ns/a', { spec: badSpec, label: 'config/api.yaml#2' });
  tell(replaced(bad));
  await settle();
  tell(replaced(bad));
  await settle();
  const logged = lines.filter((line) => line['@message'] === 'object not accepted');
  t.match(logged, [
    {
      level: 'warning',
      object: 'ns/a',
      file: 'config/api.yaml#2',
      reason: 'Invalid',
      problem: /spec\.descriptors\[0\]/,
    },
  ]);
  t.equal(logged.length, 1);
  tell(changed(makeObject('ns/a', { generation: 2 })));
  await settle();
  t.match(
    lines.find((line) => line['@message'] === 'object accepted again'),
    { object: 'ns/a', generation: 2 },
  );
});

t.test('source problem is logged once and shown while it lasts', async (t) => {
  const { tell, settle, lines, pipeline } = await startPipeline(t);
  const problems = [{ source: 'a.yaml:3:1', message: 'no YAML' }];
  for (let i = 0; i < 2; i += 1) {
    tell({ type: 'replaced', objects: [], problems });
    await settle();
  }
  t.strictSame(pipeline.state().problems, problems);
  t.equal(lines.filter(({ problem }) => problem === 'a.yaml:3:1: no YAML').length, 1);
  tell(replaced());
  await settle();
  t.strictSame(pipeline.state().problems, []);
});

t.test('closed pipeline ignores events', async (t) => {
  const { tell, pipeline, limiters, time, store } = await startPipeline(t);
  tell(replaced(makeObject('ns/a')));
  await pipeline.close();
  limiters.put(makeLimiter('1', { accepted: versions({ shop: '1' }) }));
  tell(changed(makeObject('ns/b')));
  t.equal(time.waiting, 0);
  t.equal(store.current(), undefined);
});

t.test('limiters of other replicas count like own ones', async (t) => {
  const { tell, settle, written, limiters, store, setOthers, time, published, pipeline } =
    await startPipeline(t, { hasReplicas: true });
  tell(replaced(makeObject('ns/a')));
  await settle();
  const version = store.current()?.version ?? '';
  limiters.put(makeLimiter('1', { accepted: getAccepted(store), acceptedVersion: version }));
  const other = { identity: 'replica-2_x', replica: 'replica-2' };
  setOthers([{ ...other, report: { snapshot: version, groups: [{ count: 2 }] } }]);
  time.advance(100);
  t.match(published(), {
    limiters: { connected: 1, current: 1, rejecting: 0 },
    snapshot: version,
    groups: [{ count: 1, accepted: version }],
  });
  t.match(written.splice(0).at(-1)?.programmed, { reason: 'Pending', message: /at replica-2/ });
  setOthers([{ ...other, report: { snapshot: version, groups: [{ count: 2, accepted: version }] } }]);
  time.advance(100);
  t.match(written.splice(0), [{ programmed: { reason: 'Acknowledged' } }]);
  t.equal(pipeline.state().limitersElsewhere, 2);
  t.match(pipeline.state().limitersOf({ domain: 'shop' }), { connected: 3, acknowledged: 3 });

  const rejection = { node: 'limiter-9', message: 'shop: no', snapshot: version };
  setOthers([{ ...other, report: { snapshot: version, groups: [{ count: 2, rejection }] } }]);
  time.advance(100);
  t.match(written, [{ programmed: { message: 'refused by limiter-9 at replica-2: shop: no' } }]);
});

t.test('changes are reported at once only while there are other replicas', async (t) => {
  const { tell, settle, limiters, store, setOthers, time, published } = await startPipeline(t, {
    hasReplicas: true,
  });
  setOthers([]);
  tell(replaced(makeObject('ns/a')));
  await settle();
  limiters.put(makeLimiter('1', { accepted: getAccepted(store) }));
  time.advance(100);
  t.equal(published(), undefined);
  const snapshot = store.current()?.version ?? '';
  const report = { snapshot, groups: [{ count: 1, accepted: snapshot }] };
  setOthers([{ identity: 'replica-2_x', replica: 'replica-2', report }]);
  time.advance(100);
  t.match(published(), { snapshot, groups: [{ count: 1 }] });
});

t.test('domain whose reservation ends is served without another event', async (t) => {
  let now = 0;
  const graceMs = 600_000;
  const { tell, settle, store, time, written } = await startPipeline(t, {
    domainGraceMs: graceMs,
    nowMs: () => now,
  });
  tell(replaced(makeObject('a/x', { createdMs: 1 }), makeObject('b/x', { createdMs: 2 })));
  await settle();
  now = 60_000;
  tell(deleted('a/x'));
  await settle();
  t.equal(store.current()?.resources.size, 0);
  t.match(written.at(-1), { id: 'b/x', domainOwner: 'a', accepted: { reason: 'DomainConflict' } });
  now += graceMs;
  time.advance(graceMs);
  await awaitUntil(() => store.current()?.resources.size === 1, { what: 'the domain to be served' });
  await settle();
  t.match(written.at(-1), { id: 'b/x', accepted: { status: 'True' } });
  t.equal(written.at(-1)?.domainOwner, undefined);
});

/** Starts a pipeline without a CRD whose store holds the domain `gone`. */
async function startHolding(t: Test, findsCrdDeleted: (tell: (event: SourceEvent) => void) => boolean) {
  let tell: (event: SourceEvent) => void = () => undefined;
  const spec = {
    domain: 'gone',
    descriptors: [{ key: 'k', rateLimit: { unit: 'Day', requestsPerUnit: 1 } }],
  };
  const held = { id: 'ns/gone', uid: 'gone', generation: 1, createdMs: 0, spec };
  const { store, time } = await startPipeline(t, {
    source: {
      async start(onEvent) {
        tell = onEvent;
      },
      async findDeletion() {
        if (!findsCrdDeleted(tell)) throw new Error('no answer');
        return { reason: 'the CRD is deleted', isGone: true };
      },
      close: async () => undefined,
    },
    deletions: {
      ...{ delayMs: 2_000, windowMs: 30_000, domains: 10, share: 0.5 },
      store: { ...memoryHold, start: async (onChange) => onChange({ isAllowed: false, objects: [held] }) },
    },
  });
  /** Returns the domains of the first snapshot. */
  return async () => {
    const isServed = () => {
      time.advance(1_000);
      return store.current();
    };
    const snapshot = await awaitUntil(isServed, { what: 'the first snapshot', everyMs: 1 });
    return [...(snapshot?.resources.keys() ?? [])].sort(compareText);
  };
}

t.test(
  'start without a CRD serves the stored hold, although the CRD is first looked up in vain',
  async (t) => {
    let requests = 0;
    const firstDomains = await startHolding(t, () => {
      requests += 1;
      return requests > 1;
    });
    t.strictSame(await firstDomains(), ['gone']);
    t.equal(requests, 2);
  },
);

t.test('list that arrives while the CRD is looked up is not replaced by an empty one', async (t) => {
  const firstDomains = await startHolding(t, (tell) => {
    tell(replaced(makeObject('ns/a')));
    return true;
  });
  t.strictSame(await firstDomains(), ['gone', 'shop']);
});

t.test('renamed object is reviewed without the one that was deleted, at every moment', async (t) => {
  let nowMs = 0;
  const { tell, settle, pipeline, time, store } = await startPipeline(t, {
    // Work yields after each step.
    sliceMs: 0,
    domainGraceMs: 600_000,
    anyDomainNamespaces: [],
    monotonicNow: () => nowMs,
    deletions: { delayMs: 2_000, windowMs: 30_000, domains: 10, share: 0.5, store: memoryHold },
  });
  const others = Array.from({ length: 20 }, (_, i) => makeObject(`shop/o${i}`, { domain: `shop/o${i}` }));
  tell(replaced(makeObject('shop/old', { domain: 'shop' }), ...others));
  await settle();
  const renamed = makeObject('shop/new', { domain: 'shop', createdMs: 9 });
  const review = () => runSteps(pipeline.preview(renamed)).problems.length;
  /** Reviews in each turn until then. */
  const reviewUntil = async (isOver: () => boolean) => {
    let denied = 0;
    const isDone = () => {
      denied += review();
      return isOver();
    };
    await awaitUntil(isDone, { what: 'the changes to be applied', everyMs: 0 });
    return denied;
  };
  t.equal(review(), 1, 'before the deletion');
  tell(deleted('shop/old'), ...others.map((object) => changed({ ...object, generation: 2 })));
  t.equal(review(), 0, 'before it is applied');
  time.advance(5);
  t.equal(await reviewUntil(() => time.isDueWithin(100)), 0, 'while it is admitted');
  time.advance(100);
  t.equal(review(), 0, 'while it waits');
  nowMs = 2_000;
  time.advance(2_000);
  t.equal(
    await reviewUntil(() => store.current()?.resources.has('shop') === false),
    0,
    'while it is applied',
  );
  t.equal(review(), 0, 'after it was applied');
});
