import t from 'tap';
import { changed, replaced } from '../support/catalogs.ts';
import { objectOf } from '../support/manifests.ts';
import { startPipeline } from '../support/start-pipeline.ts';

const many = (count: number) =>
  Array.from({ length: count }, (_, i) => objectOf(`ns/o${i}`, { domain: `d${i}` }));

t.test('the event loop goes on turning while 10,000 objects are taken in', async (t) => {
  const { tell, settle, store } = await startPipeline(t);
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

t.test('an edit among many computes one domain: the others are the very same resources', async (t) => {
  const { tell, settle, store } = await startPipeline(t);
  tell(replaced(...many(500)));
  await settle();
  const before = store.current();
  tell(changed(objectOf('ns/o7', { domain: 'd7', generation: 2, rules: [{ key: 'other' }] })));
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

t.test('events that come while others are taken in are not lost', async (t) => {
  const { tell, settle, store, time } = await startPipeline(t);
  tell(replaced(...many(3_000)));
  time.advance(5);
  tell(changed(objectOf('ns/late', { domain: 'late' })));
  await settle();
  await settle();
  t.ok(store.current()?.resources.has('late'));
  t.equal(store.current()?.resources.size, 3_001);
});
