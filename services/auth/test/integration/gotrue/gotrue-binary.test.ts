// Tests with two servers start the program that GOTRUE_BINARY names. A stub stands for it here.
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { jwtSecret } from '../../helpers/auth-server.ts';
import { startServerPair } from '../../helpers/two-servers.ts';

/** Is healthy at the second request, and answers with how it was started. */
const stub = `#!/usr/bin/env node
let requests = 0;
require('node:http').createServer((request, response) => {
  requests += 1;
  const { pid, argv, env } = process;
  response.writeHead(requests < 2 ? 503 : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ requests, path: request.url, pid, arguments: argv.slice(2), env }));
}).listen(Number(process.env.PORT), process.env.GOTRUE_API_HOST);
`;

async function useStub(t: Test): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'gotrue-'));
  const binary = join(folder, 'gotrue');
  await writeFile(binary, stub);
  await chmod(binary, 0o755);
  process.env.GOTRUE_BINARY = binary;
  t.teardown(async () => {
    delete process.env.GOTRUE_BINARY;
    await rm(folder, { recursive: true });
  });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

t.test('program of GOTRUE_BINARY is the second server until the test ends', async (t) => {
  await useStub(t);
  let started = 0;
  await t.test('while it runs', async (t) => {
    const { own, second, hasGotrue } = await startServerPair(t, { EXTERNAL_GITHUB_ENABLED: 'false' });
    t.equal(hasGotrue, true);
    const { status, body } = await second.call('GET', '/user');
    const { PATH: path, NODE_COMPILE_CACHE: cache, ...env } = body.env as NodeJS.ProcessEnv;
    t.equal(status, 200);
    t.match(body, { requests: 3, path: '/user', arguments: ['serve'] }, 'waits for /health');
    t.match(env, {
      DATABASE_URL: own.databaseUrl,
      DB_NAMESPACE: 'auth',
      PORT: new URL(second.url).port,
      API_EXTERNAL_URL: 'http://localhost:9999',
      GOTRUE_API_HOST: '127.0.0.1',
      GOTRUE_DB_DRIVER: 'postgres',
      GOTRUE_SITE_URL: 'https://example.com',
      GOTRUE_JWT_SECRET: jwtSecret,
      GOTRUE_JWT_AUD: 'authenticated',
      GOTRUE_MAILER_AUTOCONFIRM: 'true',
      GOTRUE_MAILER_OTP_EXP: '3600',
      GOTRUE_SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: '2',
      GOTRUE_EXTERNAL_GITHUB_ENABLED: 'false',
    });
    t.same(
      Object.keys(env).filter((name) => name.startsWith('SVC_')),
      [],
    );
    started = Number(body.pid);
    t.ok(isRunning(started));
  });
  t.notOk(isRunning(started));
});

t.test('second server is Tollgate without GOTRUE_BINARY', async (t) => {
  t.equal((await startServerPair(t)).hasGotrue, false);
});
