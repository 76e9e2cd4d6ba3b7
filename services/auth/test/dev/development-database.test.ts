import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import t from 'tap';
import { startServerCommand } from '../helpers/server-command.ts';

const variables = { LOG_LEVEL: 'info' };

function processIdIn(file: string): number {
  return Number(readFileSync(file, 'utf8').split('\n')[0]);
}

t.test('a folder has one server at a time, which stops when its PostgreSQL ends by itself', async (t) => {
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
  t.match(message, `the server with process id ${owner} uses ${folder.path}`);
  t.match(message, 'SVC_DEVELOPMENT_FOLDER');
  t.equal(processIdIn(ownerFile), owner);
  t.equal(processIdIn(databaseFile), database);
  const signedUp = await fetch(`${first.url}/signup`, {
    method: 'POST',
    body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse' }),
  });
  t.equal(signedUp.status, 200, 'the first has its database still');

  process.kill(database, 'SIGINT');
  await awaitUntil(() => first.output().includes('msg=stopped'), {
    what: 'the end of the first',
    timeoutMs: 30_000,
  });
  t.match(first.output(), /PostgreSQL ended although nobody stopped it/);
  t.equal(await first.stop(), 1);
  t.notOk(existsSync(ownerFile), 'the folder is free');
});
