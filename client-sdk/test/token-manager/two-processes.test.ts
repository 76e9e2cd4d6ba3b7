import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { Client } from '../../src/index.ts';
import { fileTokenStore } from '../../src/node.ts';
import { startAuthorizationServer } from '../../src/testing.ts';

const run = promisify(execFile);

t.test('two processes on one file store never lose a rotated token', async (t) => {
  const server = await startAuthorizationServer();
  t.teardown(() => server.close());
  const folder = t.testdir({});
  const client = new Client({ site: server.issuer, clientId: 'client', clientSecret: 'secret' });
  const token = await client.password.getToken('user', 'password');
  const store = fileTokenStore({ folder });
  await store.set('shared', { token: token.toStored() }, undefined);

  const program = join(import.meta.dirname, 'renewing-process.ts');
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
