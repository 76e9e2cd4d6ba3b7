import { awaitUntil } from '@tollgate/testkit/await-until';
import { startRedisCluster } from '@tollgate/testkit/redis-cluster';
import t from 'tap';

const cluster = await startRedisCluster({ replicas: 3 });
t.teardown(cluster.stop);

/** The slot of `key`, as the server computes it. */
async function slotOf(key: string): Promise<number> {
  return Number(await cluster.masters[0]?.command('CLUSTER', 'KEYSLOT', key));
}

/** A key in a slot of a master, none of which is used twice. */
async function keyAt(master: number, prefix: string): Promise<string> {
  for (let i = 0; ; i += 1) {
    if (cluster.masterOf(await slotOf(`${prefix}${i}`)) === master) return `${prefix}${i}`;
  }
}

function run(master: number, ...words: string[]) {
  const node = cluster.masters[master];
  if (node === undefined) throw new RangeError(`no master ${master}`);
  return node.command(...words);
}

t.test('from the start every node knows the primary of each replica', async (t) => {
  for (const { command } of [...cluster.masters, ...cluster.replicas]) {
    const nodes = String(await command('CLUSTER', 'NODES'));
    for (const [i, { id }] of cluster.replicas.entries()) {
      t.match(nodes, new RegExp(`^${id} .*slave ${cluster.masters[i]?.id}`, 'm'));
    }
  }
});

t.test('each master serves its slots and redirects to the owners of others', async (t) => {
  for (const [i, master] of cluster.masters.entries()) {
    const key = await keyAt(i, 'own');
    t.equal(await master.command('INCRBY', key, '1'), 1);
    const message = new RegExp(`MOVED ${await slotOf(key)} ${master.address}`);
    await t.rejects(run((i + 1) % 3, 'GET', key), { message });
  }
});

t.test('a slot moves with its keys; new ones are created at the target', async (t) => {
  const key = await keyAt(0, 'moving');
  const slot = await slotOf(key);
  const there = cluster.masters[1]?.address;
  await run(0, 'INCRBY', key, '5');
  const move = await cluster.startMove(slot, 0, 1);
  t.equal(await run(0, 'GET', key), '5', 'until it is gone');
  await move.migrateKeys();
  await t.rejects(run(0, 'GET', key), { message: new RegExp(`ASK ${slot} ${there}`) });
  await move.finish();
  await t.rejects(run(0, 'GET', key), { message: new RegExp(`MOVED ${slot} ${there}`) });
  t.equal(await run(1, 'GET', key), '5');
});

t.test('after a move, all masters know the owner, and the slot can move again', async (t) => {
  const slot = await slotOf(await keyAt(0, 'restless'));
  for (let i = 0; i < 20; i += 1) {
    const [from, to] = i % 2 === 0 ? [0, 1] : [1, 0];
    await cluster.moveSlot(slot, from, to);
    const owner = cluster.masters[to]?.id;
    const tables = await Promise.all(cluster.masters.map((_, master) => run(master, 'CLUSTER', 'NODES')));
    const epochs = tables.map(
      (table) => new RegExp(`^${owner} .* (\\d+) connected`, 'm').exec(String(table))?.[1],
    );
    t.equal(new Set(epochs).size, 1, `move ${i}: its epoch is ${epochs.join(', ')}`);
  }
});

t.test('a failover swaps a master and its replica', async (t) => {
  const key = await keyAt(1, 'handed over');
  await run(1, 'INCRBY', key, '3');
  await cluster.handOver(1);
  t.equal(await cluster.replicas[1]?.command('INCRBY', key, '1'), 4);
});

t.test('a replica replaces a master that was killed', async (t) => {
  const key = await keyAt(2, 'killed');
  await run(2, 'INCRBY', key, '7');
  await awaitUntil(async () => (await run(2, 'WAIT', '1', '1000')) === 1, { what: 'replication' });
  await cluster.stopNode(2);
  t.notOk(cluster.masters[2]?.isRunning());
  await cluster.promoteReplica(2);
  t.equal(await cluster.replicas[2]?.command('INCRBY', key, '1'), 8);
  const named = new RegExp(`MOVED \\d+ ${cluster.replicas[2]?.address}`);
  await awaitUntil(
    () =>
      run(0, 'GET', key).then(
        () => false,
        (error: Error) => named.test(error.message),
      ),
    { what: 'the others to know' },
  );
});
