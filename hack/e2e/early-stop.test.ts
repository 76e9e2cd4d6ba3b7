import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { programEnvironment } from '@tollgate/testkit/processes';
import t, { type Test } from 'tap';

const unreachable = '127.0.0.1:1';

/** Settings of a start that does not end: each service waits for something unreachable. */
const services: Readonly<Record<string, (folder: string) => Readonly<Record<string, string>>>> = {
  auth: () => ({
    PORT: '0',
    SVC_API_HOST: '127.0.0.1',
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'http://localhost:9999',
    SVC_DB_DRIVER: 'postgres',
    SVC_DB_DATABASE_URL: `postgres://${unreachable}/none`,
    SVC_DB_STARTUP_TIMEOUT: '10m',
    SVC_JWT_SECRET: 'a secret of the test, 32 bytes long',
  }),
  ratelimit: (folder) => ({
    ...{ PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0', LOG_LEVEL: 'debug', DISABLE_STATS: 'true' },
    ...{ KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_URL: unreachable, RUNTIME_ROOT: folder },
  }),
  xds: (folder) => ({
    ...{ XDS_FOLDER: folder, XDS_GRPC_PLAINTEXT: 'true', XDS_GRPC_PORT: '0', XDS_ADMIN_PORT: '0' },
    LOG_LEVEL: 'debug',
  }),
};

/** Modules whose load begins a phase of the start. */
const moments = ['/src/cli/serve.ts', '/src/config/settings.ts', '/app.ts'];

/** A module that sends SIGTERM to its own process when a file is about to be loaded. */
function signalAtLoad(file: string): string {
  const code = `import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, nextLoad) {
    if (url.endsWith('${file}')) process.kill(process.pid, 'SIGTERM');
    return nextLoad(url, context);
  },
});`;
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

function start(t: Test, service: string, flags: readonly string[] = []) {
  const folder = temporaryFolder();
  t.teardown(() => folder.remove());
  const program = resolve(import.meta.dirname, `../../services/${service}/src/main.ts`);
  const env = programEnvironment(services[service]?.(folder.path));
  const child = spawn(process.execPath, [...flags, program], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

for (const service of Object.keys(services)) {
  for (const file of moments) {
    t.test(`${service} ends with 0 when SIGTERM arrives while ${file} is loaded`, async (t) => {
      const child = start(t, service, [signalAtLoad(file)]);
      const ended = once(child, 'close');
      const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
      t.strictSame([child.exitCode, child.signalCode], [0, null], `${output}${errors}`);
    });
  }

  t.test(`${service} ends with 0 when SIGTERM arrives with its first log line`, async (t) => {
    const child = start(t, service);
    const ended = once(child, 'close');
    for (const stream of [child.stdout, child.stderr]) stream.once('data', () => child.kill('SIGTERM'));
    await ended;
    t.strictSame([child.exitCode, child.signalCode], [0, null]);
  });
}
