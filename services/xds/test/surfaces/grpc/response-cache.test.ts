import t from 'tap';
import { noSubscription, replaceSubscription, select } from '../../../src/domain/subscription.ts';
import { createResponseCache } from '../../../src/surfaces/grpc/response-cache.ts';
import { testSnapshot } from '../../support/test-snapshot.ts';

const everythingOf = (snapshot: ReturnType<typeof testSnapshot>) => ({
  snapshot,
  resources: snapshot.resources,
});

t.test('what a snapshot encodes to is made once, for whoever wants all of it', async (t) => {
  const cache = createResponseCache();
  const snapshot = testSnapshot({ a: 1 });
  t.equal(cache.sotwBody(everythingOf(snapshot)), cache.sotwBody(everythingOf(snapshot)));
  t.equal(cache.versions(snapshot.resources), cache.versions(snapshot.resources));
  const other = testSnapshot({ a: 2 });
  const body = cache.sotwBody(everythingOf(snapshot));
  t.not(cache.sotwBody(everythingOf(other)), body);
  t.not(cache.sotwBody(everythingOf(snapshot)), body, 'that of an older snapshot is kept no more');
});

t.test('so is the difference of two snapshots, and what it encodes to', async (t) => {
  const cache = createResponseCache();
  const [before, after, later] = [testSnapshot({ a: 1 }), testSnapshot({ a: 2 }), testSnapshot({ a: 3 })];
  const diff = cache.diff(before.resources, after.resources);
  t.equal(cache.diff(before.resources, after.resources), diff);
  t.equal(
    cache.deltaBody({ selection: everythingOf(after), diff }),
    cache.deltaBody({ selection: everythingOf(after), diff }),
  );
  t.not(cache.diff(before.resources, later.resources), diff);
});

t.test('what one client asks for by name is not kept', async (t) => {
  const cache = createResponseCache();
  const snapshot = testSnapshot({ a: 1, b: 1 });
  const selection = select(snapshot, replaceSubscription(noSubscription, ['a']));
  const body = cache.sotwBody(selection);
  t.not(cache.sotwBody(selection), body);
  t.strictSame(cache.sotwBody(selection), body);
});
