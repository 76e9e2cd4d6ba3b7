import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { createDevelopmentFolder, developmentHints } from '../../src/cli/development.ts';
import { runCommand } from '../helpers/run-command.ts';
import { startServerCommand } from '../helpers/server-command.ts';

const variables = { LOG_LEVEL: 'info' };

function processIdIn(file: string): number {
  return Number(readFileSync(file, 'utf8').split('\n')[0]);
}

t.test('a folder is used by one server, which stops if its PostgreSQL exits', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const ownerFile = join(folder.path, 'server.pid');
  const databaseFile = join(folder.path, 'data/postmaster.pid');
  const first = await startServerCommand(folder.path, variables);
  t.teardown(first.stop);
  const owner = processIdIn(ownerFile);
  const database = processIdIn(databaseFile);

  const message = await startServerCommand(folder.path, variables).then(
    (second) => second.stop().then(() => 'it started'),
    (error: Error) => error.message,
  );
  t.match(message, `${folder.path} is in use by the server with process id ${owner}`);
  t.match(message, 'SVC_DEVELOPMENT_FOLDER');
  t.equal(processIdIn(ownerFile), owner);
  t.equal(processIdIn(databaseFile), database);
  const signedUp = await fetch(`${first.url}/signup`, {
    method: 'POST',
    body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse' }),
  });
  t.equal(signedUp.status, 200, 'the first has its database still');

  const env = { SVC_MODE: 'development', SVC_DEVELOPMENT_FOLDER: folder.path };
  const user = () => runCommand(['users', 'get', 'ada@example.com'], { env, cwd: folder.path });
  t.match(await user(), { exitCode: 0, output: /"email": "ada@example.com"/ }, 'a command beside it');

  process.kill(database, 'SIGINT');
  t.equal(await first.ended(), 1);
  t.match(first.output(), /PostgreSQL exited unexpectedly/);
  t.match(first.output(), 'msg=stopped');
  t.notOk(existsSync(ownerFile), 'the folder is free');
  t.match(await user(), { exitCode: 0, output: /"email": "ada@example.com"/ }, 'a command without a server');
  t.notOk(existsSync(ownerFile), 'the command has stopped its PostgreSQL');
  const routes = await runCommand(['routes'], { env, cwd: folder.path });
  t.match(routes, { exitCode: 0, output: /everything else/ });
});

t.test('development mode listens on loopback only', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const everywhere = '0.0.0.0';
  const server = await startServerCommand(folder.path, {
    ...variables,
    SVC_API_HOST: everywhere,
    SVC_EXT_AUTHZ_HOST: everywhere,
    SVC_METRICS_ENABLED: 'true',
    SVC_METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_HOST: everywhere,
    OTEL_EXPORTER_PULL_PORT: '0',
  });
  t.teardown(server.stop);
  const ports = [/listening http=(\d+)/, /extAuthzHttp=(\d+)/, /extAuthzGrpc=(\d+)/, /url=\S*?:(\d+)\//].map(
    (pattern) => Number(pattern.exec(server.output())?.[1]),
  );
  // Another address of this machine, which only who listens at all of them has.
  const answers = (host: string, port: number) =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ host, port });
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  for (const port of ports) {
    t.equal(await answers('127.0.0.1', port), true, `${port}`);
    t.equal(await answers('127.0.0.2', port), false, `${port}`);
  }
});

/** Root may write everywhere, so forbidden folders are tried as another user. */
const unprivileged: { uid?: number; gid?: number } =
  process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/** Output of a server that is started on a folder, and ends at once. */
async function outputOf(t: Test, folder: string): Promise<string> {
  const { exitCode, output, errors } = await runCommand(['serve'], {
    ...unprivileged,
    cwd: '/',
    env: { PORT: '0', SVC_MODE: 'development', SVC_DEVELOPMENT_FOLDER: folder },
  });
  t.equal(exitCode, 1, folder);
  t.equal(output, '');
  return errors;
}

t.test('an unusable folder is a one-line error', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  chmodSync(folder.path, 0o755);
  const file = join(folder.path, 'file');
  const locked = join(folder.path, 'locked');
  const link = join(folder.path, 'link');
  symlinkSync(join(folder.path, 'nothing'), link);
  writeFileSync(file, '');
  mkdirSync(locked);
  chownSync(locked, unprivileged.uid ?? statSync(locked).uid, unprivileged.gid ?? statSync(locked).gid);
  chmodSync(locked, 0o500);
  for (const [path, reason] of [
    [file, `${file} is not a folder`],
    [join(file, 'below'), `${file} is not a folder`],
    [link, `${link} is not a folder`],
    [locked, `no permission to write ${locked}`],
    [join(locked, 'below/it'), `no permission to write ${join(locked, 'below')}`],
    ['/proc/tollgate/below', 'no folders can be created in /proc'],
  ] as const)
    t.equal(
      await outputOf(t, path),
      `cannot use the development folder ${path}: ${reason}. Set SVC_DEVELOPMENT_FOLDER to a writable folder\n`,
    );
});

t.test('folders are created recursively and concurrently', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const deep = join(folder.path, 'a/b/c');
  await Promise.all([createDevelopmentFolder(deep), createDevelopmentFolder(deep)]);
  await createDevelopmentFolder(deep);
  t.ok(existsSync(deep));
});

t.test('the hints mention email limits, unless they are set', (t) => {
  const hints = (smtpMaxFrequencyMs: number | undefined) =>
    developmentHints(8081, { developmentFolder: 'data', smtpMaxFrequencyMs });
  t.match(hints(undefined), 'SVC_RATE_LIMIT_EMAIL_SENT=1000 SVC_SMTP_MAX_FREQUENCY=1s npm start');
  t.notMatch(hints(1000), 'SVC_SMTP_MAX_FREQUENCY');
  for (const text of [hints(undefined), hints(1000)])
    for (const path of ['/signup', '/pages/sign-up']) t.match(text, `http://localhost:8081${path}`);
  t.end();
});
