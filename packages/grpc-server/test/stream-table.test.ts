import { StreamTable } from '@tollgate/grpc-server/stream-table';
import fc from 'fast-check';
import t from 'tap';

interface TestStream {
  readonly id: number;
}

/** The ids of a table, ascending. */
function idsOf(table: StreamTable<TestStream>): number[] {
  return [...table.values()].map(({ id }) => id).toSorted((a, b) => a - b);
}

t.test('a table holds what a map would, whatever streams stay open', async () => {
  // How many streams begin, and which of the open ones ends then, if any.
  const step = fc.tuple(fc.nat(40), fc.option(fc.nat(2_000)));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const table = new StreamTable<TestStream>();
      const expected = new Map<number, TestStream>();
      let nextId = 1;
      for (const [begun, ended] of steps) {
        for (let i = 0; i < begun; i += 1, nextId += 2) {
          const stream = { id: nextId };
          table.add(stream);
          expected.set(nextId, stream);
        }
        const open = [...expected.values()];
        const last = ended === null ? undefined : open[ended % open.length];
        if (last !== undefined) {
          table.delete(last);
          expected.delete(last.id);
        }
      }
      return (
        table.size === expected.size &&
        [...expected].every(([id, stream]) => table.get(id) === stream) &&
        table.get(nextId) === undefined &&
        idsOf(table).join() === [...expected.keys()].join()
      );
    }),
  );
});

t.test('thousands of short streams beside one that stays open', async (t) => {
  const table = new StreamTable<TestStream>();
  const first = { id: 1 };
  table.add(first);
  for (let id = 3; id < 20_000; id += 2) {
    const stream = { id };
    table.add(stream);
    if (table.get(id) !== stream) t.fail(`stream ${id} is missing`);
    table.delete(stream);
    table.delete(stream);
    if (table.get(id) !== undefined || table.size !== 1) t.fail(`stream ${id} is still there`);
  }
  t.equal(table.get(1), first);
  t.same(idsOf(table), [1]);
});

t.test('streams may be deleted while the table is read', async (t) => {
  const table = new StreamTable<TestStream>();
  for (let id = 1; id < 3_000; id += 2) table.add({ id });
  let read = 0;
  for (const stream of table.values()) {
    table.delete(stream);
    read += 1;
  }
  t.equal(read, 1_500);
  t.equal(table.size, 0);
  table.add({ id: 3_001 });
  table.clear();
  t.same(idsOf(table), []);
  t.equal(table.get(3_001), undefined);
});
