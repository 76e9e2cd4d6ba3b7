import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { serviceAccount, startAdmission } from '../support/admission.ts';
import { prepareCluster } from '../support/cluster.ts';

const perMinute = { unit: 'Minute', requestsPerUnit: 10 };

const manifestOf = (name: string, spec: object, namespace = 'shop') => ({
  apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
  kind: 'RateLimitConfig',
  metadata: { name, namespace },
  spec: { domain: `${namespace}/${name}`, ...spec },
});

const limited = (key: string) => ({ key, rateLimit: perMinute });
const twice = { descriptors: [limited('user'), limited('user')] };

kubeSuite(
  t,
  'the admission webhook of an API server',
  async (t, kube) => {
    await prepareCluster(kube, ['shop', 'platform']);
    const stored = JSON.stringify(manifestOf('stored', twice));
    await kube.kubectl(['create', '-f', '-'], { input: stored });
    const { app, apply } = await startAdmission(t, kube);
    const get = async (name: string, path: string) =>
      (await kube.kubectl(['get', 'rlc', '-n', 'shop', name, `-o=jsonpath={${path}}`])).stdout;

    await t.test('valid object is applied without a warning', async (t) => {
      const { code, stdout, stderr } = await apply(manifestOf('web', { descriptors: [limited('user')] }));
      t.equal(code, 0, stderr);
      t.match(stdout, /created/);
      t.equal(stderr, '');
    });

    await t.test('every problem is printed with its field', async (t) => {
      const item = { key: 'user', rateLimit: { ...perMinute, algorithm: 'TokenBucket', maxDebt: 1 } };
      const { code, stderr } = await apply(manifestOf('bad', { descriptors: [item, item] }));
      t.equal(code, 1);
      t.equal(
        stderr,
        [
          'The request is invalid: error when creating "STDIN": admission webhook "validate.ratelimit.tollgate.dev" denied the request: ',
          '  spec.descriptors[0].rateLimit.maxDebt: maxDebt requires charge: Always',
          "  spec.descriptors[1].key: duplicate descriptor composite key 'shop/bad.user' (the first is at spec.descriptors[0].key)",
          '  spec.descriptors[1].rateLimit.maxDebt: maxDebt requires charge: Always',
          '',
        ].join('\n'),
      );
    });

    await t.test('one problem follows on the same line', async (t) => {
      t.match(
        (await apply(manifestOf('bad', twice))).stderr,
        /denied the request: spec\.descriptors\[1\]\.key: dup/,
      );
    });

    await t.test('domain of another namespace is refused', async (t) => {
      await awaitUntil(async () => (await get('web', '.status.conditions[0].status')) === 'True', {
        what: 'the status',
      });
      const rival = manifestOf('rival', { domain: 'shop/web', descriptors: [limited('user')] }, 'platform');
      t.match(
        (await apply(rival)).stderr,
        /spec\.domain: 'shop\/web' belongs to namespace 'shop', whose object shop\/web is older: choose another/,
      );
    });

    await t.test('domain that does not belong to the namespace is refused', async (t) => {
      const { stderr } = await apply(manifestOf('bank', { domain: 'bank', descriptors: [limited('user')] }));
      t.match(
        stderr,
        /spec\.domain: 'bank' does not belong to namespace 'shop': use 'shop' or 'shop\/<name>'/,
      );
    });

    await t.test('dry run is reviewed, and stores nothing', async (t) => {
      t.match((await apply(manifestOf('bad', twice), '--dry-run=server')).stderr, /denied the request/);
      const good = manifestOf('good', { descriptors: [limited('user')] });
      t.match((await apply(good, '--dry-run=server')).stdout, /created \(server dry run\)/);
      t.equal(await get('good', '.metadata.name'), '');
    });

    await t.test('descriptor without a limit is a warning', async (t) => {
      const { code, stderr } = await apply(
        manifestOf('bare', { descriptors: [limited('user'), { key: 'vip' }] }),
      );
      t.equal(code, 0);
      t.match(
        stderr,
        /^Warning: spec\.descriptors\[1\]: has neither rateLimit nor descriptors: requests that it matches are not limited/,
      );
    });

    await t.test('invalid object in the store: status, labels and deletion are not reviewed', async (t) => {
      await awaitUntil(async () => (await get('stored', '.status.conditions[0].status')) === 'False', {
        what: 'the status of the invalid object',
      });
      const patch = async (body: object) =>
        await kube.kubectl([
          'patch',
          'rlc',
          '-n',
          'shop',
          'stored',
          '--type=merge',
          '-p',
          JSON.stringify(body),
        ]);
      t.match(await patch({ metadata: { labels: { team: 'a' }, finalizers: ['example.com/hold'] } }), {
        code: 0,
      });
      t.match((await patch({ spec: { trial: true } })).stderr, /denied the request/);
      await kube.kubectl(['delete', 'rlc', '-n', 'shop', 'stored', '--wait=false']);
      t.match(await patch({ spec: { trial: true } }), { code: 0 }, 'an object that is being deleted');
      t.match(await patch({ metadata: { finalizers: null } }), { code: 0 });
    });

    await t.test('authority that is replaced reaches the configuration', async (t) => {
      const read = async () =>
        (
          await kube.kubectl([
            'get',
            'validatingwebhookconfiguration/tollgate-xds',
            '-o=jsonpath={.webhooks[0].clientConfig.caBundle}',
          ])
        ).stdout;
      const before = await read();
      t.not(before, '');
      const lost = ['ca', 'server'].map((part) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `tollgate-xds-${part}`, namespace: 'tollgate' },
        data: null,
      }));
      for (const secret of lost)
        await kube.kubectl(['replace', '-f', '-'], { input: JSON.stringify(secret) });
      await awaitUntil(async () => (await read()) !== before, { what: 'the new caBundle' });
      await awaitUntil(
        async () => (await apply(manifestOf('bad', twice), '--dry-run=server')).stderr.includes('denied'),
        { what: 'the webhook to be called again' },
      );
    });

    await t.test('without the xDS server objects are stored, and their status follows', async (t) => {
      await app.lifecycle.stop('test');
      t.match(await apply(manifestOf('bad', twice)), { code: 0, stdout: /created/ });
    });
  },
  { users: [{ name: serviceAccount }] },
);
