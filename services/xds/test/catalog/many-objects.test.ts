import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { PendingEvents } from '../../src/catalog/pending-events.ts';
import { changed, deleted, replaced } from '../support/catalogs.ts';
import { makeLimiter } from '../support/limiters.ts';
import { makeObject } from '../support/manifests.ts';
import { startPipeline } from '../support/start-pipeline.ts';

/** As in production. */
const inSlices = { sliceMs: 5 };

const many = (count: number) =>
  Array.from({ length: count }, (_, i) => makeObject(`ns/o${i}`, { domain: `d${i}` }));

t.test('event loop is not blocked while 10,000 objects are applied', async (t) => {
  const { tell, settle, store } = await startPipeline(t, inSlices);
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  tell(replaced(...many(10_000)));
  await settle();
  clearImmediate(next);
  t.equal(store.current()?.resources.size, 10_000);
  // Some 400 ms of work in slices of 5 ms.
  t.ok(turns >= 20, `${turns} turns`);
});

t.test('event loop is not blocked while 10,000 statuses are reported', async (t) => {
  const { tell, settle, written, pipeline } = await startPipeline(t, inSlices);
  tell(replaced(...many(10_000)));
  await settle();
  t.ok(written.length < 10_000, `${written.length} at once`);
  await awaitUntil(() => written.length === 10_000, { what: 'the status of all objects', everyMs: 1 });
  t.equal(pipeline.state().statuses.size, 10_000);
});

t.test('changes during a long status report are reported right after it', async (t) => {
  const { tell, settle, written, limiters, time, pipeline } = await startPipeline(t, inSlices);
  tell(replaced(...many(10_000)));
  await settle();
  limiters.put(makeLimiter('1', { accepted: new Map() }));
  time.advance(100);
  await awaitUntil(() => written.length === 10_000, { what: 'the status of all objects', everyMs: 1 });
  t.ok(
    written.every(({ programmed }) => programmed.reason === 'NoClients'),
    'one report says one thing',
  );
  time.advance(100);
  await awaitUntil(() => written.length === 20_000, { what: 'the status of the limiter', everyMs: 1 });
  t.equal(pipeline.state().statuses.get('ns/o9999')?.programmed.reason, 'Pending');
});

t.test('closed pipeline stops reporting', async (t) => {
  const { tell, settle, written, pipeline } = await startPipeline(t, inSlices);
  tell(replaced(...many(10_000)));
  await settle();
  await pipeline.close();
  const count = written.length;
  t.ok(count < 10_000, `${count} statuses`);
});

t.test('edit among many objects computes one domain and reuses the other resources', async (t) => {
  const { tell, settle, store } = await startPipeline(t, inSlices);
  tell(replaced(...many(500)));
  await settle();
  const before = store.current();
  tell(changed(makeObject('ns/o7', { domain: 'd7', generation: 2, rules: [{ key: 'other' }] })));
  await settle();
  const after = store.current();
  const different = [...(after?.resources ?? [])].filter(
    ([name, one]) => before?.resources.get(name) !== one,
  );
  t.strictSame(
    different.map(([name]) => name),
    ['d7'],
  );
  t.not(after?.version, before?.version);
});

t.test('events during a batch are not lost', async (t) => {
  const { tell, settle, store, time } = await startPipeline(t, inSlices);
  tell(replaced(...many(3_000)));
  time.advance(5);
  tell(changed(makeObject('ns/late', { domain: 'late' })));
  await settle();
  await settle();
  t.ok(store.current()?.resources.has('late'));
  t.equal(store.current()?.resources.size, 3_001);
});

t.test('only the last event of an object counts, and a list replaces earlier events', async (t) => {
  const pending = new PendingEvents();
  const list = replaced(makeObject('ns/a'));
  const last = changed(makeObject('ns/a', { generation: 3 }));
  for (const event of [deleted('ns/x'), list, changed(makeObject('ns/a', { generation: 2 })), last])
    pending.add(event);
  t.strictSame(pending.take(), [list, last]);
  t.ok(pending.isEmpty);
});

t.test('a second list has the objects from before a restart of the first', (t) => {
  const pending = new PendingEvents();
  const before = [makeObject('ns/stored')];
  pending.add({ type: 'replaced', objects: [], before });
  pending.add(replaced(makeObject('ns/a')));
  const [first] = pending.take();
  t.match(first, { objects: [{ id: 'ns/a' }], before: [{ id: 'ns/stored' }] });
  pending.add(replaced());
  pending.putBack(first === undefined ? [] : [first]);
  t.match(pending.take(), [{ objects: [], before: [{ id: 'ns/stored' }] }]);
  t.end();
});

t.test('events that are put back are older than those added since', async (t) => {
  const pending = new PendingEvents();
  pending.add(changed(makeObject('ns/a')));
  pending.add(changed(makeObject('ns/b')));
  const taken = pending.take();
  pending.add(deleted('ns/b'));
  pending.putBack(taken);
  t.strictSame(pending.take(), [taken[0], deleted('ns/b')]);
  pending.add(replaced());
  pending.putBack(taken);
  t.strictSame(pending.take(), [replaced()]);
});
