import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { connect } from '../../src/db/connection.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';

t.test('requests that exceed SVC_API_MAX_REQUEST_DURATION get a 504', async (t) => {
  // Signing up may take longer than that on a machine that has other work.
  const patient = await startAuthServer(t);
  const { databaseUrl } = patient;
  const server = await startAuthServer(t, { API_MAX_REQUEST_DURATION: '1', DB_DATABASE_URL: databaseUrl });
  const { accessToken } = await signUp(patient);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  await sql.begin(async (busy) => {
    await busy`lock table users in access exclusive mode`;
    t.match(await server.call('GET', '/user', { token: accessToken }), {
      status: 504,
      body: {
        code: 504,
        error_code: 'request_timeout',
        msg: 'Processing this request timed out, please retry after a moment.',
        error_id: /./,
      },
    });
    t.match(await server.call('PUT', '/user', { token: accessToken, body: { data: { a: 1 } } }), {
      status: 504,
    });
  });
  await awaitUntil(async () => (await server.call('GET', '/user', { token: accessToken })).status === 200, {
    what: 'an answer in time',
  });
});

t.test('a client that does not finish its request is disconnected', async (t) => {
  const server = await startAuthServer(t, { API_MAX_REQUEST_DURATION: '1' });
  const socket = connectSocket(Number(new URL(server.url).port), '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.write('POST /signup HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"email"');
  const [answer] = (await once(socket, 'data')) as [Buffer]; // the first bytes of the answer
  t.match(answer.toString(), /^HTTP\/1\.1 (408|504) /);
});

t.test('a known path responds to other methods with 405 and Allow', async (t) => {
  const server = await startAuthServer(t);
  const refused = await server.call('POST', '/health', { body: '{' });
  t.match(refused, {
    status: 405,
    body: { code: 405, error_code: 'method_not_allowed', msg: 'Method not allowed' },
  });
  t.equal(refused.headers.get('allow'), 'GET, HEAD');
  t.match(await server.call('DELETE', '/token'), { status: 405 });
  t.match(await server.call('GET', '/token'), { status: 405 });
  t.match(await server.call('GET', '/nothing'), {
    status: 404,
    body: { code: 404, error_code: 'not_found', msg: 'Path not found' },
  });
  t.match(await fetch(`${server.url}/health`, { method: 'HEAD' }), { status: 200 });
  t.match(await server.call('GET', '/health/'), { status: 200 });
});

t.test('the server is ready if the database is available', async (t) => {
  const server = await startAuthServer(t);
  // It waits for the database for less than a second.
  const ready = await awaitUntil(
    async () => {
      const answer = await server.call('GET', '/ready');
      return answer.status === 200 && answer;
    },
    { what: 'the server to be ready' },
  );
  t.match(ready, { body: { status: 'ready' } });
  const url = new URL(server.databaseUrl);
  const name = url.pathname.slice(1);
  url.pathname = '/postgres';
  const sql = connect({ databaseUrl: url.href, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  await sql.unsafe(`alter database "${name}" allow_connections false`);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
  await awaitUntil(async () => (await server.call('GET', '/ready')).status === 503, {
    what: 'the server to notice',
  });
  t.match(await server.call('GET', '/health'), { status: 200 });
  await sql.unsafe(`alter database "${name}" allow_connections true`);
  await awaitUntil(async () => (await server.call('GET', '/ready')).status === 200, {
    what: 'the server to come back',
  });
});
