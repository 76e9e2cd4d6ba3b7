import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { connectApi, createEditor, prepareCluster } from '../support/cluster.ts';
import { settles, startSource } from '../support/source-under-test.ts';

/** A sleep that ends when the test releases it: the source does not reconnect before. */
function gate() {
  const sleepers = new Set<() => void>();
  return {
    sleep: (_ms: number, { signal }: { readonly signal: AbortSignal }): Promise<void> =>
      new Promise((resolve) => {
        sleepers.add(resolve);
        signal.addEventListener('abort', () => resolve());
      }),
    isClosed: () => sleepers.size > 0,
    let() {
      for (const wake of sleepers) wake();
      sleepers.clear();
    },
  };
}

kubeSuite(
  t,
  'the objects of a cluster whose history is compacted',
  async (t, kube) => {
    await prepareCluster(kube, ['shop']);
    const api = await connectApi(kube);
    t.teardown(() => api.close());
    const editor = createEditor(kube, api);
    const { sleep, isClosed, let: letGo } = gate();
    await editor.create('shop', 'stays');
    await editor.create('shop', 'goes');
    const following = await startSource(api, { sleep });
    t.teardown(() => following.source.close());
    await settles(following, { 'shop/goes': 1, 'shop/stays': 1 });

    const whileAway = async (change: () => Promise<unknown>): Promise<void> => {
      await kube.killApiserver();
      await awaitUntil(isClosed, { what: 'the source to wait' });
      await kube.startApiserver();
      await change();
      letGo();
    };

    await t.test('are followed without a list while the history exists', async (t) => {
      await whileAway(() => editor.edit('shop', 'stays', 2));
      await settles(following, { 'shop/goes': 1, 'shop/stays': 2 });
      t.equal(await following.metric('tollgate_xds_source_relists_total'), 1);
    });

    await t.test('are listed again after it was compacted, and only differences are passed on', async (t) => {
      const toldBefore = following.types.length;
      await whileAway(async () => {
        await editor.delete('shop', 'goes');
        await editor.create('shop', 'comes');
        await kube.compact();
      });
      await settles(following, { 'shop/comes': 1, 'shop/stays': 2 });
      t.equal(await following.metric('tollgate_xds_source_relists_total'), 2);
      t.strictSame(following.types.slice(toldBefore), ['deleted', 'changed']);
    });
  },
  { args: ['--watch-cache=false'] },
);
