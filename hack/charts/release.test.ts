import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { makeTextFolder } from '@tollgate/testkit/text-folder';
import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { helmIsMissing, runHelm } from './support/helm.ts';

// An API server is started, and helm waits for its answers, on a machine that may have other work.
t.setTimeout(240_000);

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
  const imageOf = async (deployment: string) =>
    (await kube.kubectl(['get', deployment, '-o', 'jsonpath={.spec.template.spec.containers[0].image}']))
      .stdout;
  const restartOf = async (deployment: string) =>
    (await kube.kubectl(['get', deployment, '-o', 'jsonpath={.spec.template.metadata.annotations}'])).stdout;
  const dev = ['--set=dev.enabled=true', '--set=dev.secret=0123456789abcdef0123456789abcdef'];
  const chart = 'charts/tollgate';

  await t.test('is installed, and says what to do next', async (t) => {
    const notes = await helm('install', 'tollgate', chart, ...dev);
    t.match(notes, 'helm test tollgate -n default');
    t.match(notes, 'ext_authz   tollgate-auth-headless.default:9001');
    const deployments = await get('deployments');
    for (const name of ['auth', 'ratelimit', 'xds']) t.match(deployments, `deployment.apps/tollgate-${name}`);
    t.match(await get('statefulsets'), /tollgate-dev-postgresql\n.*tollgate-dev-valkey/);
    t.match(await get('crds'), 'ratelimitconfigs.ratelimit.tollgate.dev');
  });

  await t.test('is upgraded and rolled back', async (t) => {
    await helm('upgrade', 'tollgate', chart, ...dev, '--set=xds.image.tag=next');
    t.equal(await imageOf('deployment/tollgate-xds'), 'tollgate/xds:next');
    await helm('rollback', 'tollgate', '1');
    t.equal(await imageOf('deployment/tollgate-xds'), `tollgate/xds:${packageJson.version}`);
  });

  await t.test('restarts Pods when an upgrade finds their Secret changed, and no others', async (t) => {
    // The Secret was not there yet when it was installed.
    await helm('upgrade', 'tollgate', chart, ...dev);
    const before = {
      auth: await restartOf('deployment/tollgate-auth'),
      xds: await restartOf('deployment/tollgate-xds'),
    };
    await helm('upgrade', 'tollgate', chart, ...dev);
    t.equal(await restartOf('deployment/tollgate-auth'), before.auth, 'nothing has changed');
    const secret = 'secret/tollgate-auth';
    await kube.kubectl([
      'patch',
      secret,
      '-p',
      '{"stringData":{"SVC_JWT_SECRET":"another-secret-of-32-characters!"}}',
    ]);
    await helm('upgrade', 'tollgate', chart, ...dev);
    t.not(await restartOf('deployment/tollgate-auth'), before.auth);
    t.equal(await restartOf('deployment/tollgate-xds'), before.xds);
  });

  await t.test('leaves the CRD and every RateLimitConfig behind when it goes, and comes again', async (t) => {
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

  await t.test('shares a cluster with another one', async (t) => {
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
  domain: shop
  descriptors: [{key: user, rateLimit: {unit: Minute, requestsPerUnit: 3}}]
`;
