import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import type { HeldObject } from '../../src/catalog/source.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import { HeldConfigMap } from '../../src/sources/held-config-map.ts';
import { connectApi } from '../support/cluster.ts';
import { recordingLogger } from '../support/recording-logger.ts';

interface Replica {
  readonly holds: HeldConfigMap;
  readonly lines: readonly Record<string, unknown>[];
  /** Ids of the objects in the ConfigMap, as this replica has read them one after another. */
  readonly history: readonly string[];
}

async function startReplica(
  t: Test,
  api: ApiClient,
  { name, leads }: { name: string; leads: boolean },
): Promise<Replica> {
  const { logger, lines } = recordingLogger();
  const leadership = { isLeader: () => leads, onChange: () => () => undefined };
  const holds = new HeldConfigMap({
    api,
    logger,
    leadership,
    namespace: 'default',
    name,
    followerDelayMs: 5,
  });
  t.teardown(() => holds.close());
  const history: string[] = [];
  await holds.start(({ objects }) => void history.push(objects.map(({ id }) => id).join()));
  return { holds, lines, history };
}

function stores({ history }: Replica, id: string): Promise<unknown> {
  return awaitUntil(() => history.at(-1) === id, { what: `the object '${id}'` });
}

const held = (id: string): HeldObject => ({ id, uid: id, generation: 1, createdMs: 5, spec: {} });

kubeSuite(t, 'held deletions in a ConfigMap', async (t, kube) => {
  const api = await connectApi(kube);
  t.teardown(() => api.close());

  await t.test('replica that holds deletions alone stores them, although it is not the leader', async (t) => {
    const follower = await startReplica(t, api, { name: 'alone', leads: false });
    const leader = await startReplica(t, api, { name: 'alone', leads: true });
    follower.holds.put([held('ns/a')]);
    await stores(leader, 'ns/a');
    await stores(follower, 'ns/a');
    follower.holds.put([held('ns/b')]);
    leader.holds.put([held('ns/c')]);
    await stores(follower, 'ns/c');
    leader.holds.put([]);
    await stores(leader, '');
  });

  await t.test('hold that ends right after it was stored is removed', async (t) => {
    const leader = await startReplica(t, api, { name: 'short', leads: true });
    leader.holds.put([held('ns/a')]);
    leader.holds.put([]);
    await awaitUntil(() => leader.history.includes('ns/a'), { what: 'the hold' });
    await stores(leader, '');
    t.strictSame(
      leader.lines.filter(({ level }) => level !== 'info'),
      [],
    );
  });
});
