import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HealthCheckResponse_ServingStatus as Serving } from '@tollgate/proto/grpc/health/v1/health';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { connect } from '../support/grpc-client.ts';
import { startApp } from '../support/start-app.ts';

function socketPath(t: Test): string {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  return join(folder.path, 'grpc.sock');
}

/** Listens on the path in a process that is killed and so cannot remove its socket. */
async function leaveSocketBehind(path: string): Promise<void> {
  const script = `require('node:net').createServer().listen(process.argv[1], () => console.log('listening'))`;
  const child = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
}

t.test('a stale socket of a killed process is replaced', async (t) => {
  const path = socketPath(t);
  await leaveSocketBehind(path);
  t.ok(existsSync(path), 'it is still there');
  await startApp(t, { env: { GRPC_UDS: path } });
  t.equal(await connect(t, `unix:${path}`).check('ratelimit'), Serving.SERVING);
});

t.test('a socket in use is an error and keeps serving', async (t) => {
  const path = socketPath(t);
  await startApp(t, { env: { GRPC_UDS: path } });
  const { app } = await startApp(t, { env: { GRPC_UDS: path }, start: false });
  await t.rejects(app.lifecycle.start(), { message: `GRPC_UDS: another process listens on ${path}` });
  t.equal(await connect(t, `unix:${path}`).check('ratelimit'), Serving.SERVING);
});

t.test('a file other than a socket is an error and is kept', async (t) => {
  const path = socketPath(t);
  writeFileSync(path, 'dear');
  const { app } = await startApp(t, { env: { GRPC_UDS: path }, start: false });
  await t.rejects(app.lifecycle.start(), { message: `GRPC_UDS: ${path} exists and is not a socket` });
  t.equal(readFileSync(path, 'utf8'), 'dear');
});

t.test('a missing folder is named as the reason', async (t) => {
  const path = join(socketPath(t), 'grpc.sock');
  const { app } = await startApp(t, { env: { GRPC_UDS: path }, start: false });
  await t.rejects(app.lifecycle.start(), { message: `GRPC_UDS: the folder of ${path} does not exist` });
});
