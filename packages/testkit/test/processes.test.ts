import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { temporaryFolder } from '../src/folders.ts';
import { findBinary, startServerProcess } from '../src/processes.ts';

const alwaysReady = async () => {};

t.test('a server that ends before it is ready is reported with its output', async (t) => {
  const starting = startServerProcess({
    command: '/bin/sh',
    args: ['-c', 'echo no luck today >&2; exit 3'],
    ready: () => Promise.reject(new Error('not yet')),
  });
  await t.rejects(starting, { message: /ended with code 3.*no luck today/s, cause: { message: 'not yet' } });
});

t.test('a server that is never ready is killed and reported', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const said = join(folder.path, 'said');
  const starting = startServerProcess({
    command: '/bin/sh',
    args: ['-c', 'echo still thinking; echo > "$0"; exec sleep 60', said],
    ready: async () => {
      // Reported output is complete, however long the shell takes to start.
      await awaitUntil(() => existsSync(said), { what: 'the server to say something' });
      throw new Error('not yet');
    },
    readyTimeoutMs: 100,
  });
  await t.rejects(starting, { message: /did not answer within 100 ms.*still thinking/s });
});

t.test('a server that ends by itself is not running, and stop succeeds', async (t) => {
  const server = await startServerProcess({ command: '/bin/sh', args: ['-c', 'exit 0'], ready: alwaysReady });
  await awaitUntil(() => !server.isRunning(), { what: 'the server to end' });
  await t.resolves(server.stop());
});

t.test('a server has its environment, which is not among the arguments', async (t) => {
  const server = await startServerProcess({
    command: '/bin/sh',
    args: ['-c', 'echo "home: $HOME, secret: $SECRET"; exec sleep 60'],
    env: { SECRET: 'hunter2' },
    ready: alwaysReady,
  });
  t.teardown(server.stop);
  await awaitUntil(() => server.logs().endsWith('\n'), { what: 'what it says' });
  t.equal(server.logs(), 'home: , secret: hunter2\n');
});

t.test('a server ends with the process that started it, even when that is killed', async (t) => {
  const parent = spawn(process.execPath, ['--input-type=module-typescript', '-e', orphanMaker], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout.setEncoding('utf8'), 'data')) as [string];
  const serverPid = Number(line);
  t.ok(isAlive(serverPid), 'the server runs');

  parent.kill('SIGKILL');
  await awaitUntil(() => !isAlive(serverPid), { what: 'the server to end after its parent' });
});

/** Starts a server that prints its own process id, passes that on, and stays until it is killed. */
const orphanMaker = `
  import { startServerProcess } from '@tollgate/testkit/processes';
  const server = await startServerProcess({
    command: '/bin/sh',
    args: ['-c', 'echo $$; exec sleep 60'],
    ready: () => Promise.resolve(),
  });
  while (server.logs() === '') await new Promise(setImmediate);
  process.stdout.write(server.logs());
`;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

t.test('a program on PATH is found', async (t) => {
  t.match(findBinary('sh'), /\/sh$/);
});

t.test('a missing program is reported with the way to install it', async (t) => {
  t.throws(() => findBinary('no-such-program'), {
    message: 'no-such-program is not installed: run hack/setup.sh test',
  });
});
