import { makeTextFolder } from '@tollgate/testkit/folders';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { services } from '../images/build-images.ts';
import { helmIsMissing, releaseRegistry, runHelm } from './support/helm.ts';

helmIsMissing();
kubeSuite(t, 'a release of all of Tollgate', async (t, kube) => {
  const home = makeTextFolder(t).path;
  const helm = async (...args: string[]) => {
    const { code, stdout, stderr } = await runHelm(args, { home, kubeconfigFile: kube.kubeconfigFile });
    if (code !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const get = async (...args: string[]) =>
    (await kube.kubectl(['get', '--ignore-not-found', '-o', 'name', ...args])).stdout;
  const findImage = async (deployment: string) =>
    (await kube.kubectl(['get', deployment, '-o', 'jsonpath={.spec.template.spec.containers[0].image}']))
      .stdout;
  /** By service, as JSON: Pods restart when it changes. */
  const podTemplates = async (): Promise<Readonly<Record<string, string>>> => {
    const getTemplate = async (service: string) =>
      (await kube.kubectl(['get', `deployment/tollgate-${service}`, '-o', 'jsonpath={.spec.template}']))
        .stdout;
    const templates = services.map(async (service) => [service, await getTemplate(service)]);
    return Object.fromEntries(await Promise.all(templates));
  };
  const dev = ['--set=dev.enabled=true', '--set=dev.secret=0123456789abcdef0123456789abcdef'];
  const chart = 'charts/tollgate';

  await t.test('with access policies, the next thing to do is to create one', async (t) => {
    const policies = '--set=auth.policies.enabled=true';
    const output = await helm('install', 'tollgate', chart, '--dry-run=client', ...dev, policies);
    const [, notes = ''] = output.split('NOTES:');
    t.match(notes, 'kind: AccessPolicy');
    t.notMatch(notes, 'kind: RateLimitConfig');
  });

  await t.test('is installed, and says what to do next', async (t) => {
    const notes = await helm('install', 'tollgate', chart, ...dev);
    t.match(notes, 'helm test tollgate -n default');
    t.match(notes, 'ext_authz   tollgate-auth-headless.default:9001');
    t.match(notes, 'kind: RateLimitConfig');
    t.match(notes, 'The console is at http://localhost:8070, while');
    t.match(notes, 'admin createuser --confirm --role=supabase_admin');
    const deployments = await get('deployments');
    for (const name of services) t.match(deployments, `deployment.apps/tollgate-${name}`);
    t.match(await get('statefulsets'), /tollgate-dev-postgresql\n.*tollgate-dev-valkey/);
    t.match(await get('crds'), 'ratelimitconfigs.ratelimit.tollgate.dev');
  });

  await t.test('is upgraded and rolled back', async (t) => {
    await helm('upgrade', 'tollgate', chart, ...dev, '--set=xds.image.tag=next');
    t.equal(await findImage('deployment/tollgate-xds'), `${releaseRegistry}/tollgate/xds:next`);
    await helm('rollback', 'tollgate', '1');
    t.equal(
      await findImage('deployment/tollgate-xds'),
      `${releaseRegistry}/tollgate/xds:${packageJson.version}`,
    );
  });

  await t.test('restarts no Pods in an upgrade without changes', async (t) => {
    // Its Secrets did not exist when it was installed.
    const before = await podTemplates();
    for (const _ of [1, 2]) {
      await helm('upgrade', 'tollgate', chart, ...dev);
      t.strictSame(await podTemplates(), before);
    }
  });

  await t.test('restarts only Pods whose Secret has changed', async (t) => {
    const before = await podTemplates();
    const stringData = { SVC_JWT_SECRET: 'another-secret-of-32-characters!' };
    await kube.kubectl(['patch', 'secret/tollgate-auth', '-p', JSON.stringify({ stringData })]);
    await helm('upgrade', 'tollgate', chart, ...dev);
    const { auth, ...others } = await podTemplates();
    t.not(auth, before.auth);
    t.match(before, others);
    const after = await podTemplates();
    await helm('upgrade', 'tollgate', chart, ...dev);
    // The Secret of development mode is again as it was.
    t.not((await podTemplates()).auth, after.auth);
    await helm('upgrade', 'tollgate', chart, ...dev);
    t.match(before, others, 'the others never restarted');
  });

  await t.test(
    'restarts Pods that ran before the Secret existed, and no Pods that waited for it',
    async (t) => {
      const values = ['--set=crds.enabled=false,auth.enabled=false,xds.enabled=false'];
      const store = '--set=ratelimit.settings.KVSTORE_URL=redis:6379';
      for (const [name, available] of [
        ['ran', '2000-01-01T00:00:00Z'],
        ['waited', '2999-01-01T00:00:00Z'],
      ] as const) {
        await helm('install', name, chart, ...values, store);
        const times = { lastUpdateTime: available, lastTransitionTime: available };
        const conditions = [{ type: 'Available', status: 'True', reason: 'r', message: '', ...times }];
        const deployment = `deployment/${name}-ratelimit`;
        const status = [
          '--subresource=status',
          '--type=merge',
          '-p',
          JSON.stringify({ status: { conditions } }),
        ];
        await kube.kubectl(['patch', deployment, ...status]);
        const template = async () =>
          (await kube.kubectl(['get', deployment, '-o', 'jsonpath={.spec.template}'])).stdout;
        const before = await template();
        await kube.kubectl([
          'create',
          'secret',
          'generic',
          `${name}-ratelimit`,
          '--from-literal=KVSTORE_AUTH=x',
        ]);
        await helm('upgrade', name, chart, ...values, store);
        t.equal((await template()) !== before, name === 'ran', name);
        await helm('uninstall', name);
      }
    },
  );

  await t.test('keeps the CRD and RateLimitConfigs when it is uninstalled and installed again', async (t) => {
    await kube.apply(firstLimit);
    await helm('uninstall', 'tollgate');
    t.equal(
      await get('deployments,services,secrets,configmaps', '-l', 'app.kubernetes.io/part-of=tollgate'),
      '',
    );
    t.match(await get('ratelimitconfigs'), 'first');
    await helm('install', 'tollgate', chart, ...dev);
    t.match(await get('ratelimitconfigs'), 'first');
  });

  await t.test('can be installed twice in a cluster', async (t) => {
    await kube.kubectl(['create', 'namespace', 'other']);
    await helm('install', 'tollgate', chart, ...dev, '--namespace=other', '--set=crds.enabled=false');
    t.match(await get('clusterroles'), /default-tollgate-xds\n(.*\n)*.*other-tollgate-xds/);
  });
});

const firstLimit = `
apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata:
  name: first
spec:
  domain: default/first
  descriptors: [{key: user, rateLimit: {unit: Minute, requestsPerUnit: 3}}]
`;
