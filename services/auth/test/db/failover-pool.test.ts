import { awaitUntil } from '@tollgate/testkit/await-until';
import { startPostgresPair } from '@tollgate/testkit/postgres-pair';
import { startTcpProxy } from '@tollgate/testkit/tcp-proxy';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { parseConnectionString } from '../../src/db/connection-string.ts';
import { FailoverPool } from '../../src/db/failover-pool.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';

const signUpAs = (server: AuthServer, name: string) =>
  server.call('POST', '/signup', { body: { email: `${name}@example.com`, password: 'correct horse' } });

async function startPair(t: Test) {
  const pair = await startPostgresPair();
  t.teardown(pair.stop);
  await pair.primary.createOwnedDatabase('auth', 'secret');
  await pair.standby.catchUp();
  return pair;
}

t.test('of several hosts the one that accepts writes is used, also after a promotion', async (t) => {
  const { primary, standby, demote } = await startPair(t);
  const server = await startAuthServer(t, {
    // The standby comes first.
    DB_DATABASE_URL: `postgres://auth:secret@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/auth?target_session_attrs=read-write`,
  });
  const ada = await signUp(server);
  t.equal((await server.call('GET', '/ready')).status, 200);

  await standby.catchUp();
  await demote();
  t.match(await signUpAs(server, 'ben'), { status: 503, body: { error_code: 'database_unavailable' } });
  server.clock.advance(5_000);
  t.match(await server.call('GET', '/ready'), { status: 503 });

  await standby.promote();
  await awaitUntil(async () => (await signUpAs(server, 'cleo')).status === 200, {
    what: 'a sign-up on the new primary',
  });
  t.match(await server.call('GET', '/user', { token: ada.accessToken }), { status: 200 });
  server.clock.advance(5_000);
  t.match(await server.call('GET', '/ready'), { status: 200, body: { status: 'ready' } });

  await primary.stop();
  t.match(await signUpAs(server, 'dora'), { status: 200 }, 'the other host is not needed');
});

t.test('connections to a server that became read-only are replaced', async (t) => {
  const { primary, standby, demote } = await startPair(t);
  // Like a DNS name that points to the primary: open connections stay where they are.
  const proxy = await startTcpProxy(primary.port);
  t.teardown(proxy.stop);
  const server = await startAuthServer(t, {
    DB_DATABASE_URL: `postgres://auth:secret@127.0.0.1:${proxy.port}/auth`,
  });
  const ada = await signUp(server);
  await standby.catchUp();
  await demote();
  await standby.promote();
  proxy.redirect(standby.port);

  t.match(await server.call('GET', '/user', { token: ada.accessToken }), { status: 200 });
  t.match(await server.call('GET', '/ready'), { status: 503, body: { status: 'database read-only' } });
  t.match(await server.call('GET', '/ready?writes=false'), { status: 200 });
  t.match(await signUpAs(server, 'ben'), { status: 200 }, 'on a new connection');
  server.clock.advance(5_000);
  t.match(await server.call('GET', '/ready'), { status: 200 });
});

t.test('a read-only standby is an outage for writes only', async (t) => {
  const { primary, standby } = await startPair(t);
  const proxy = await startTcpProxy(primary.port);
  t.teardown(proxy.stop);
  const server = await startAuthServer(t, {
    DB_DATABASE_URL: `postgres://auth:secret@127.0.0.1:${proxy.port}/auth`,
  });
  const { accessToken, refreshToken } = await signUp(server);
  await standby.catchUp();
  proxy.set('refuse');
  // Needs no database: meanwhile the pool sees that its connections are gone.
  t.match(await server.call('GET', '/health'), { status: 200 });
  t.match(await server.call('GET', '/user', { token: accessToken }), { status: 503 });
  proxy.redirect(standby.port);
  proxy.set('forward');
  t.match(await server.call('GET', '/user', { token: accessToken }), { status: 200 });
  for (const [path, body] of [
    // Reads an unlogged table first, which a standby does not have.
    ['/token?grant_type=password', { email: 'ada@example.com', password: 'correct horse' }],
    ['/token?grant_type=refresh_token', { refresh_token: refreshToken }],
  ] as const) {
    const answer = await server.call('POST', path, { body });
    t.same([answer.status, answer.headers.get('retry-after')], [503, '1'], `${path} ${answer.text}`);
  }
});

t.test('connections to a server that no longer answers are replaced', async (t) => {
  const { primary } = await startPair(t);
  const proxy = await startTcpProxy(primary.port);
  t.teardown(proxy.stop);
  const pool = new FailoverPool({
    open: (url) => postgres(url, { max: 1 }),
    connectionString: parseConnectionString(`postgres://auth:secret@127.0.0.1:${proxy.port}/auth`),
    maxSilenceMs: 500,
  });
  t.teardown(() => pool.close());
  const select = () => pool.run((current) => current.unsafe('select 1 as one'));
  t.match(await select(), [{ one: 1 }]);
  proxy.set('hold');
  await t.rejects(select(), { code: 'database_unavailable' });
  proxy.set('forward');
  t.match(await select(), [{ one: 1 }]);
});
