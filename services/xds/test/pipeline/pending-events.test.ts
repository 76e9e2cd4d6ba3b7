import t from 'tap';
import { createPendingEvents } from '../../src/pipeline/pending-events.ts';
import { changed, deleted, replaced } from '../support/catalogs.ts';
import { objectOf } from '../support/manifests.ts';

t.test('of each object the last event counts, and a list makes what came before it void', async (t) => {
  const pending = createPendingEvents();
  const list = replaced(objectOf('ns/a'));
  const last = changed(objectOf('ns/a', { generation: 3 }));
  for (const event of [deleted('ns/x'), list, changed(objectOf('ns/a', { generation: 2 })), last])
    pending.add(event);
  t.strictSame(pending.take(), [list, last]);
  t.ok(pending.isEmpty);
});

t.test('events that are put back are older than those that came since', async (t) => {
  const pending = createPendingEvents();
  pending.add(changed(objectOf('ns/a')));
  pending.add(changed(objectOf('ns/b')));
  const taken = pending.take();
  pending.add(deleted('ns/b'));
  pending.putBack(taken);
  t.strictSame(pending.take(), [taken[0], deleted('ns/b')]);
  pending.add(replaced());
  pending.putBack(taken);
  t.strictSame(pending.take(), [replaced()]);
});
