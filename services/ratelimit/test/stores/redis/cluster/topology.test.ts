import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { nodeAddress, parseSlotMap } from '../../../../src/stores/redis/cluster/slots.ts';
import { Topology, type TopologyHooks } from '../../../../src/stores/redis/cluster/topology.ts';

const [seed, a, b] = [nodeAddress('seed', 1), nodeAddress('a', 1), nodeAddress('b', 1)];

/** A topology whose nodes `a` and `b` have half of the slots each, and what it does. */
function makeTopology(t: Test, deps: Partial<TopologyHooks> = {}) {
  const queried: string[] = [];
  const events: string[] = [];
  const topology = new Topology({
    seeds: [seed],
    connected: () => [a, b],
    query(node) {
      queried.push(node.name);
      const map = parseSlotMap(
        [
          [0, 8191, ['a', 1]],
          [8192, 16383, ['b', 1]],
        ],
        node,
      );
      return Promise.resolve(map);
    },
    startDelayMs: () => 1,
    refreshIntervalMs: 1_000_000,
    onMap: () => events.push('map'),
    onError: ({ message }) => events.push(message),
    ...deps,
  });
  t.teardown(() => topology.close(new Error('the test is over')));
  return { topology, queried, events };
}

t.test('the first map comes from a seed, later ones from connected nodes in turn', async (t) => {
  const connected: (typeof a)[] = [];
  const { topology, queried } = makeTopology(t, { connected: () => connected, refreshIntervalMs: 1 });
  await topology.start();
  t.same(queried, ['seed:1']);
  connected.push(a, b);
  await awaitUntil(() => queried.includes('a:1') && queried.includes('b:1'), { what: 'both nodes' });
});

t.test('the preferred node is queried first', async (t) => {
  const { topology, queried } = makeTopology(t);
  await topology.start();
  const c = nodeAddress('c', 1);
  topology.refresh(c);
  await awaitUntil(() => queried.length === 2, { what: 'a reading' });
  t.equal(queried.at(-1), 'c:1');
});

t.test('refreshes are sequential, with a pause between them', async (t) => {
  const { topology, queried } = makeTopology(t);
  await topology.start();
  for (let i = 0; i < 1_000; i += 1) {
    topology.refresh();
    await new Promise(setImmediate);
  }
  await awaitUntil(() => queried.length >= 3, { what: 'another reading after the pause' });
  t.ok(queried.length < 50, `${queried.length} readings`);
});

t.test('the last map is kept while no node answers, which is logged once', async (t) => {
  let away: boolean = false;
  const map = parseSlotMap([[0, 16383, ['a', 1]]], a);
  const { topology, events } = makeTopology(t, {
    query: (node) => (away ? Promise.reject(new Error(`${node.name}: gone`)) : Promise.resolve(map)),
  });
  await topology.start();
  away = true;
  topology.refresh();
  await awaitUntil(() => events.length === 2, { what: 'the failure' });
  t.equal(events[1], 'no node of the Redis Cluster returned its slots: a:1: gone; b:1: gone; seed:1: gone');
  t.equal(topology.map, map);
  away = false;
  topology.refresh();
  await awaitUntil(() => events.length === 3, { what: 'the next reading' });
  t.equal(events[2], 'map');
});

t.test('a waiting start rejects with the reason of the close', async (t) => {
  const { topology, events } = makeTopology(t, { query: () => Promise.reject(new Error('away')) });
  const started = t.rejects(topology.start(), { message: 'closed on purpose' });
  await awaitUntil(() => events.length > 2, { what: 'attempts' });
  topology.close(new Error('closed on purpose'));
  await started;
});
