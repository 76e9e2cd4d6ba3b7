import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { Client } from '../../src/index.ts';
import { fileTokenStore } from '../../src/node.ts';
import { startAuthorizationServer } from '../../src/testing.ts';
import { TokenManager } from '../../src/token-manager.ts';

const run = promisify(execFile);
const program = join(import.meta.dirname, 'renewing-process.ts');

/** A server that other processes reach, and a store in files with a token of it. */
async function setUp(t: Test) {
  const server = await startAuthorizationServer();
  t.teardown(() => server.close());
  // A subfolder, which the store makes for its user alone.
  const folder = join(t.testdir({}), 'tokens');
  const client = new Client({ site: server.issuer, clientId: 'client', clientSecret: 'secret' });
  const token = await client.password.getToken('user', 'password');
  const store = fileTokenStore({ folder });
  await store.set('shared', { token: token.toStored() }, undefined);
  return { server, folder, client, store };
}

t.test('two processes on one file store never lose a rotated token', async (t) => {
  const { server, folder, store } = await setUp(t);
  const start = () => run(process.execPath, [program, server.issuer, folder, '20']);
  await Promise.all([start(), start()]);

  const refreshes = server.requests.filter(({ params }) => params.get('grant_type') === 'refresh_token');
  const shown = refreshes.map(({ params }) => params.get('refresh_token'));
  t.equal(new Set(shown).size, shown.length, 'no refresh token is shown twice');
  t.ok(shown.length >= 20, `${shown.length} refreshes`);
  const last = (await store.get('shared'))?.record;
  t.ok(server.isActive(String(last?.token?.refresh_token)), 'the stored refresh token is good');
  t.notOk(last?.lease);
});

t.test('a process that dies while renewing blocks others for the length of its lease', async (t) => {
  const { server, folder, client, store } = await setUp(t);
  server.inject({ endpoint: 'token', effect: 'hang' });
  // So long that it is still waiting when it is killed, on a machine that may have other work.
  const dying = spawn(process.execPath, [program, server.issuer, folder, '1', '5']);
  await awaitUntil(() => server.count('token') === 2, { what: 'the refresh of the other process' });
  dying.kill('SIGKILL');
  await once(dying, 'close');
  t.ok((await store.get('shared'))?.record.lease, 'its lease is left behind');

  await using manager = new TokenManager({ client, store, key: 'shared' });
  const renewed = await manager.renew();
  t.ok(server.isActive(renewed.refreshToken ?? ''));
  t.equal((await store.get('shared'))?.record.token?.access_token, renewed.token);
});
