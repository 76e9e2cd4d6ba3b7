import { isDeepStrictEqual } from 'node:util';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import type { ApiClient } from '../../src/kube/client.ts';
import { connectApi, createEditor, prepareCluster } from '../support/cluster.ts';
import { type SourceUnderTest, settles, startSource } from '../support/source-under-test.ts';

const reader = 'system:serviceaccount:shop:reader';

async function start(t: Test, ...args: Parameters<typeof startSource>): Promise<SourceUnderTest> {
  const following = await startSource(...args);
  t.teardown(() => following.source.close());
  return following;
}

kubeSuite(
  t,
  'the objects of a cluster',
  async (t, kube) => {
    const api: ApiClient = await connectApi(kube);
    t.teardown(() => api.close());
    const editor = createEditor(kube, api);

    await t.test('are waited for while the CRD is not installed', async (t) => {
      const following = await start(t, api);
      await awaitUntil(() => following.logs.length > 0, { what: 'a log line' });
      t.match(following.logs[0]?.reason, 'kubectl apply -f crds/ratelimitconfigs.yaml');

      await prepareCluster(kube, ['shop', 'bank', 'elsewhere']);
      await settles(following, {});
      t.strictSame(following.types, ['replaced']);
    });

    await t.test('are followed as they are created, edited and deleted', async (t) => {
      const following = await start(t, api);
      await settles(following, {});
      await editor.create('shop', 'web');
      await settles(following, { 'shop/web': 1 });
      await editor.edit('shop', 'web', 2);
      await settles(following, { 'shop/web': 2 });
      t.match(following.object('shop/web'), {
        id: 'shop/web',
        namespace: 'shop',
        name: 'web',
        uid: /^[0-9a-f-]{36}$/,
        generation: 2,
        order: 'shop/web',
        manifest: { apiVersion: 'ratelimit.tollgate.dev/v1alpha1', kind: 'RateLimitConfig' },
      });
      const age = Date.now() - (following.object('shop/web')?.createdMs ?? 0);
      t.ok(age > -2_000 && age < 60_000, `${age} ms old`);
      t.equal(following.source.objects.get('shop/web'), following.object('shop/web'));

      await editor.delete('shop', 'web');
      await settles(following, {});
      t.strictSame(following.types, ['replaced', 'changed', 'changed', 'deleted']);
      t.equal(following.source.objects.get('shop/web'), undefined);
    });

    await t.test('are not passed on when only metadata or status has changed', async (t) => {
      const following = await start(t, api);
      await awaitUntil(() => following.types.length > 0, { what: 'the first list' });
      await editor.create('shop', 'labelled');
      await settles(following, { 'shop/labelled': 1 });
      const { code } = await kube.kubectl(['label', 'rlc', 'labelled', '-n', 'shop', 'team=web']);
      t.equal(code, 0);
      await awaitUntil(
        () =>
          JSON.stringify(following.source.objects.get('shop/labelled')?.manifest).includes('"team":"web"'),
        { what: 'the label' },
      );
      await editor.delete('shop', 'labelled');
      await settles(following, {});
      t.strictSame(following.types, ['replaced', 'changed', 'deleted']);
    });

    await t.test('come in pages and are one event', async (t) => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) await editor.create('shop', name);
      const following = await start(t, api, { pageSize: 2 });
      await settles(following, { 'shop/a': 1, 'shop/b': 1, 'shop/c': 1, 'shop/d': 1, 'shop/e': 1 });
      t.strictSame(following.types, ['replaced']);
    });

    await t.test('of several namespaces are passed on when all were listed', async (t) => {
      await editor.create('bank', 'x');
      await editor.create('elsewhere', 'y');
      const following = await start(t, api, { namespaces: ['bank', 'shop', 'bank'] });
      await settles(following, {
        ...{ 'bank/x': 1, 'shop/a': 1, 'shop/b': 1, 'shop/c': 1, 'shop/d': 1, 'shop/e': 1 },
      });
      await editor.edit('elsewhere', 'y', 2);
      await editor.edit('bank', 'x', 3);
      await awaitUntil(() => following.limits()['bank/x'] === 3, { what: 'the edit' });
      t.strictSame(following.types, ['replaced', 'changed']);
    });

    await t.test('are not passed on in part while one namespace is forbidden', async (t) => {
      const asReader = await connectApi(kube, reader);
      t.teardown(() => asReader.close());
      const grant = async (namespace: string) => {
        const role = ['--verb=list,watch', '--resource=ratelimitconfigs.ratelimit.tollgate.dev'];
        await kube.kubectl(['create', 'role', 'reader', '-n', namespace, ...role]);
        const binding = ['--role=reader', '--serviceaccount=shop:reader'];
        await kube.kubectl(['create', 'rolebinding', 'reader', '-n', namespace, ...binding]);
      };
      await grant('bank');
      const following = await start(t, asReader, { namespaces: ['bank', 'elsewhere'] });
      await awaitUntil(() => following.source.objects.get('bank/x') !== undefined, {
        what: 'the namespace bank',
      });
      await awaitUntil(() => following.logs.some(({ namespace }) => namespace === 'elsewhere'), {
        what: 'the refusal',
      });
      t.strictSame(following.types, []);
      t.match(
        following.logs
          .filter(({ namespace, level }) => namespace === 'elsewhere' && level === 'warning')
          .at(-1)?.reason,
        'not allowed to list ratelimitconfigs.ratelimit.tollgate.dev in namespace elsewhere',
      );
      await grant('elsewhere');
      await settles(following, { 'bank/x': 3, 'elsewhere/y': 2 });
    });

    await t.test('are the same for two watchers after many edits', async (t) => {
      const [one, two] = [await start(t, api), await start(t, api, { pageSize: 1 })];
      const names = Array.from({ length: 20 }, (_, index) => `storm-${index}`);
      const storm = names.map(async (name, index) => {
        await editor.create('elsewhere', name);
        for (let limit = 2; limit < 6; limit += 1) await editor.edit('elsewhere', name, limit + index);
      });
      await Promise.all(storm);
      await kube.kubectl(['delete', 'rlc', '-n', 'elsewhere', ...names.slice(0, 10)]);
      const done = (source: SourceUnderTest) =>
        source.limits()['elsewhere/storm-19'] === 24 && Object.keys(source.limits()).length === 17;
      await awaitUntil(
        () => done(one) && done(two) && isDeepStrictEqual(one.generations(), two.generations()),
        {
          what: 'equal sets',
        },
      );
      t.equal(one.limits()['elsewhere/storm-9'], undefined);
    });

    await t.test('are removed with their CRD, and followed again when it is back', async (t) => {
      const following = await start(t, api);
      await awaitUntil(() => following.source.objects.get('bank/x') !== undefined, { what: 'the objects' });
      await kube.kubectl(['delete', 'crd', 'ratelimitconfigs.ratelimit.tollgate.dev']);
      await settles(following, {});
      await prepareCluster(kube, ['bank']);
      await editor.create('bank', 'x', 3);
      await settles(following, { 'bank/x': 3 });
      t.equal(following.types.filter((type) => type === 'replaced').length, 1);
    });

    await t.test('are followed through a crash of the API server', async (t) => {
      const following = await start(t, api, { namespaces: ['bank'] });
      await settles(following, { 'bank/x': 3 });
      await kube.killApiserver();
      await awaitUntil(() => following.logs.length > 0, { what: 'the loss of the API server' });
      t.strictSame(following.limits(), { 'bank/x': 3 }, 'what is known stays');
      await kube.startApiserver();
      await editor.create('bank', 'after');
      await editor.edit('bank', 'x', 7);
      await settles(following, { 'bank/after': 1, 'bank/x': 7 });
      await editor.delete('bank', 'after');
      await settles(following, { 'bank/x': 7 });
      t.equal(following.types.filter((type) => type === 'replaced').length, 1);
      await awaitUntil(() => following.logs.some(({ outageMs }) => outageMs !== undefined), {
        what: 'the end of the outage in the log',
      });
    });
  },
  { users: [{ name: reader, groups: ['system:serviceaccounts'] }] },
);
