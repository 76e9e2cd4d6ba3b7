import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
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

  process.kill(database, 'SIGINT');
  t.equal(await first.ended(), 1);
  t.match(first.output(), /PostgreSQL exited unexpectedly/);
  t.match(first.output(), 'msg=stopped');
  t.notOk(existsSync(ownerFile), 'the folder is free');
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
