import { readFile } from 'node:fs/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeControllersAreMissing, startKubeControllers } from '@tollgate/testkit/kube-controllers';
import t, { type Test } from 'tap';
import { signInByFetch } from '../../services/console/test/support/fetch-session.ts';
import { startEdge } from '../e2e/support/edge.ts';
import { domain, identityRateLimits } from '../e2e/support/envoy-config.ts';
import { manifest, programmed, statusWhen } from '../e2e/support/limits.ts';
import { getStatuses } from '../e2e/support/requests.ts';
import { type Service, services } from '../images/build-images.ts';
import { startKubelet } from './kubelet/kubelet.ts';
import { kubectl } from './kubelet/node.ts';
import type { StartedPod } from './kubelet/pod.ts';
import { runHelm } from './support/helm.ts';
import { someAddress } from './support/loopback.ts';
import { createNamespace, findCheckoutImage, freePortArguments, podSuite } from './support/releases.ts';
import { startDevPostgresql, startDevValkey } from './support/stores.ts';

const namespace = 'shop';
const waitArguments = ['--wait', '--timeout=300s'];
const release = [
  ...['tg', 'charts/tollgate', '--values=charts/tollgate/ci/dev-values.yaml'],
  // Pods share an address here.
  ...services.map((service) => `--set=${service}.replicas=1`),
  // kubectl has applied the definition.
  '--take-ownership',
];

/** Pods start and end some time after helm. */
const until = (what: string, isSo: () => boolean | Promise<boolean>) =>
  awaitUntil(isSo, { what, timeoutMs: 300_000 });

podSuite(
  t,
  'a release for evaluation, installed and run',
  async (t, kube) => {
    await kube.apply(await readFile('crds/ratelimitconfigs.yaml', 'utf8'));
    const controllers = await startKubeControllers(kube);
    t.teardown(controllers.stop);
    await createNamespace(kube, namespace);
    await kube.apply(manifest({ name: 'users', namespace, domain, limits: { user_id: 2 }, unit: 'Year' }));
    const address = someAddress();
    const kubelet = await startKubelet(t, kube, {
      namespace,
      findImage: findCheckoutImage,
      hosts: {
        ...{ 'tg-dev-postgresql': address, 'tg-dev-valkey': address },
        // Its Pod listens at all addresses of loopback: that of a second replica, too.
        'tg-auth-headless': ['127.0.0.1', someAddress()],
      },
      standIns: {
        postgres: ({ POSTGRES_PASSWORD: password = '' }) => startDevPostgresql(t, { address, password }),
        'valkey/valkey': ({ REDISCLI_AUTH: password = '' }) => startDevValkey(t, { address, password }),
      },
      volumes: 2,
    });
    const home = makeTextFolder(t).path;
    const helm = async (...args: string[]) => {
      const { code, stdout, stderr } = await runHelm([...args, `--namespace=${namespace}`], {
        home,
        kubeconfigFile: kube.kubeconfigFile,
      });
      return { code, said: `${stdout}${stderr}\n${kubelet.problems.join('\n')}` };
    };
    const get = (...args: string[]) => kubectl(kube, ['get', ...args, `--namespace=${namespace}`]);
    const claims = () => get('persistentvolumeclaims', '--output=name');
    const authority = () => get('secret', 'tg-xds-ca', '-o=jsonpath={.data.ca\\.crt}');
    const leaseHolder = () => get('lease/tg-xds', '-o=jsonpath={.spec.holderIdentity}');
    const running = () => [...kubelet.pods.keys()].toSorted((a, b) => a.localeCompare(b));

    await t.test('helm waits until the Pods of all services are ready', async (t) => {
      const ports = await freePortArguments('tollgate');
      const [, authPort = ''] = /auth\.ports\.http=(\d+)/.exec(ports.join(' ')) ?? [];
      const url = `--set=dev.externalUrl=http://localhost:${authPort}`;
      const { code, said } = await helm('install', ...release, ...ports, url, ...waitArguments);
      t.equal(code, 0, said);
      t.strictSame(
        running().map((name) => name.replace(/-\w+-\w+$/, '')),
        services.map((service) => `tg-${service}`),
      );
      t.match(await claims(), /data-tg-dev-postgresql-0\n.*data-tg-dev-valkey-0/);
    });
    const pods = [...kubelet.pods.values()];
    const [auth, console, ratelimit, xds] = running().map((name) => kubelet.pods.get(name));
    if (auth === undefined || console === undefined || ratelimit === undefined || xds === undefined) return;

    await t.test('every probe of every Pod is answered', async (t) => {
      for (const pod of pods) await t.resolves(pod.askProbes());
    });

    await theRightsOfPeople(t, kube);

    await t.test('`helm test` runs its Pods', async (t) => {
      const { code, said } = await helm('test', 'tg', '--timeout=300s');
      t.equal(code, 0, said);
      t.equal(said.match(/Phase:\s+Succeeded/g)?.length, services.length);
    });

    await theConsole(t, { auth, console, ratelimit, xds });

    await t.test('the console asks each replica of the auth server for its keys', async (t) => {
      const port = auth.port('http');
      const authUrl = `http://localhost:${port}`;
      const token = await auth.exec(['services/auth/src/main.ts', 'admin', 'token']);
      const person = { email: 'grace@example.com', password: 'correct horse battery' };
      const created = await fetch(`${authUrl}/admin/users`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...person, email_confirm: true, role: 'supabase_admin' }),
      });
      t.ok(created.ok, await created.text());
      const consoleUrl = `http://localhost:${console.port('http')}`;
      const { cookie } = await signInByFetch({ consoleUrl, authUrl, ...person });
      const page = await fetch(`${consoleUrl}/settings/keys`, { headers: { cookie } });
      t.match(await page.text(), 'Auth server: 2 of 2 replicas answered.');
    });

    await t.test('Envoy rejects requests without a token, and limits each user', async (t) => {
      const edge = await startEdge(t, {
        limiters: { ports: [ratelimit.port('grpc')] },
        listeners: [{ name: 'ingress', failureModeDeny: true }],
        extAuthz: { ports: [auth.port('grpc')] },
        rateLimits: identityRateLimits,
      });
      const url = edge.url('ingress');
      t.strictSame(await getStatuses(url, undefined, 1), [401]);
      t.strictSame(await getStatuses(url, await signUp(auth, 'ada@example.com'), 3), [200, 200, 429]);
      t.strictSame(await getStatuses(url, await signUp(auth, 'ben@example.com'), 1), [200], 'counted apart');
    });

    await t.test('the rights of its ServiceAccount are enough for the xDS server', async (t) => {
      const status = await statusWhen(kube, 'users', programmed, namespace);
      t.match(status, { rules: 1 });
      t.notMatch(xds.logs(), /not allowed|forbidden/i);
      t.match(await leaseHolder(), /^tg-xds-/);
    });

    await t.test('metrics are where Prometheus looks for them', async (t) => {
      for (const [pod, port] of [
        [xds, 'admin'],
        [console, 'admin'],
        [ratelimit, 'metrics'],
        [auth, 'metrics'],
      ] as const) {
        const answer = await fetch(`http://127.0.0.1:${pod.port(port)}/metrics`);
        t.match(await answer.text(), /^# HELP/m);
      }
    });

    await t.test('an upgrade replaces the Pods, which shut down gracefully', async (t) => {
      const before = running();
      const firstAuthority = await authority();
      t.not(firstAuthority, '');
      const { code, said } = await helm(
        ...['upgrade', ...release, ...(await freePortArguments('tollgate')), ...waitArguments],
      );
      t.equal(code, 0, said);
      await until(
        'the old Pods to go',
        () => running().length === services.length && !running().some((name) => before.includes(name)),
      );
      t.equal(await authority(), firstAuthority, 'certificates are not lost');
      for (const pod of pods) {
        t.notOk(pod.isRunning());
        t.notMatch(pod.logs(), /"level":"?(fatal|60)/);
      }
    });

    await t.test('after a failing upgrade the previous Pods keep running', async (t) => {
      const before = running();
      const wrong = ['--set=ratelimit.extraEnv[0].name=SHUTDOWN_DELAY,ratelimit.extraEnv[0].value=soon'];
      const args = [...release, ...(await freePortArguments('tollgate')), ...wrong, '--wait', '--timeout=5s'];
      const { code } = await helm('upgrade', ...args);
      t.not(code, 0);
      await until('the reason to be known', () =>
        kubelet.problems.some((problem) => problem.includes('SHUTDOWN_DELAY')),
      );
      const limiter = before.find((name) => name.startsWith('tg-ratelimit-')) ?? '';
      t.ok(running().includes(limiter));
      await t.resolves(kubelet.pods.get(limiter)?.askProbes() ?? Promise.reject(new Error('it is gone')));
    });

    await t.test('after a rollback', async (t) => {
      const { code, said } = await helm('rollback', 'tg', '1', ...waitArguments);
      t.equal(code, 0, said);
      await until('all Pods', () => running().length === services.length);
      for (const pod of kubelet.pods.values()) await t.resolves(pod.askProbes());
    });

    await t.test('the xDS server releases its Lease when it stops', async (t) => {
      const name = running().find((name) => name.startsWith('tg-xds-')) ?? '';
      await kubelet.pods.get(name)?.stop();
      t.equal(await leaseHolder(), '');
    });

    await t.test('after an uninstallation nothing runs', async (t) => {
      const { code, said } = await helm('uninstall', 'tg', ...waitArguments);
      t.equal(code, 0, said);
      await until('all Pods to end', () => running().length === 0);
      await until('the data of the data stores to go with it', async () => (await claims()) === '');
    });
  },
  { skip: kubeControllersAreMissing() },
);

/**
 * Rights of the roles that every cluster has for the people of a namespace, when the chart adds to
 * them.
 */
async function theRightsOfPeople(t: Test, kube: KubeApiserver): Promise<void> {
  await t.test('view and edit rights in a namespace include its limits', async (t) => {
    for (const role of ['view', 'edit'])
      await kube.kubectl([
        ...['create', 'rolebinding', role, `--clusterrole=${role}`, `--user=${role}`],
        `--namespace=${namespace}`,
      ]);
    const as = async (user: string, args: readonly string[], where = namespace, input?: string) => {
      const words = [...args, `--as=${user}`, `--namespace=${where}`];
      const { code, stdout, stderr } = await kube.kubectl(words, input === undefined ? {} : { input });
      return code === 0 ? stdout : stderr;
    };
    const list = ['get', 'ratelimitconfigs', '--output=name'];
    const allowed = async (user: string) => !(await as(user, list)).includes('cannot list');
    const mayCreate = async () => (await as('edit', ['auth', 'can-i', 'create', 'rlc'])).startsWith('yes');
    await until('the role view to have what the chart adds', () => allowed('view'));
    await until('the role edit to have it', async () => (await allowed('edit')) && (await mayCreate()));

    const limit = manifest({ name: 'blog', namespace, domain: 'shop/blog', limits: { user: 2 } });
    t.match(await as('view', ['create', '-f', '-'], namespace, limit), /cannot create .*ratelimitconfigs/);
    t.match(await as('edit', ['create', '-f', '-'], namespace, limit), /blog created/);
    t.match(await as('view', list), /ratelimitconfig.*\/blog/);
    const [patch, status] = [['patch', 'rlc', 'blog', '--type=merge', '-p'], '--subresource=status'];
    const annotate = '{"metadata":{"annotations":{"a":"b"}}}';
    t.match(await as('edit', [...patch, annotate]), /blog patched/);
    t.match(await as('edit', [...patch, '{"status":{"rules":1}}', status]), /cannot patch/, 'not the report');
    t.match(await as('edit', list, 'default'), /cannot list/, 'not of other namespaces');
    t.match(await as('edit', ['delete', 'rlc', 'blog']), /deleted/);
  });
}

/** It finds the other parts, and the auth server knows it. */
async function theConsole(
  t: Test,
  { auth, console, ratelimit, xds }: Readonly<Record<Service, StartedPod>>,
): Promise<void> {
  await t.test('the console sends to the sign-in of the auth server, which knows it', async (t) => {
    const url = `http://127.0.0.1:${console.port('http')}`;
    const signIn = await fetch(url, { redirect: 'manual' });
    const target = new URL(signIn.headers.get('location') ?? '', url);
    t.match([signIn.status, target.pathname], [303, '/oauth/authorize']);
    t.equal(target.searchParams.get('redirect_uri'), `http://localhost:${console.port('http')}/callback`);
    const authorize = `http://127.0.0.1:${auth.port('http')}${target.pathname}${target.search}`;
    const page = await fetch(authorize, { redirect: 'manual' });
    t.match([page.status, page.headers.get('location')], [302, /\/pages\//], await page.text());
  });

  await t.test('administrators of the auth server may use the admin APIs that it calls', async (t) => {
    const token = await auth.exec(['services/auth/src/main.ts', 'admin', 'token']);
    const headers = { authorization: `Bearer ${token.trim()}` };
    for (const url of [
      `http://127.0.0.1:${ratelimit.port('https-admin')}/v1/domains`,
      `http://127.0.0.1:${xds.port('admin')}/v1/objects`,
    ]) {
      t.equal((await fetch(url)).status, 401, url);
      t.equal((await fetch(url, { headers })).status, 200, url);
    }
  });
}

/** A user who has signed up, and is signed in: the access token. */
async function signUp(auth: StartedPod, email: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${auth.port('http')}/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: 'correct horse battery' }),
  });
  // Parsed boundary: of the service's own JSON one field is looked at.
  const body = (await answer.json()) as { readonly access_token?: string };
  if (body.access_token === undefined)
    throw new Error(`signing up was answered ${answer.status}: ${JSON.stringify(body)}`);
  return body.access_token;
}
