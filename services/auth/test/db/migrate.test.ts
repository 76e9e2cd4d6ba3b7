import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { explainStartFailure, isAway } from '../../src/db/connection.ts';
import { migrate } from '../../src/db/migrate.ts';
import { testDatabase } from '../helpers/test-database.ts';

/** A database behind a port where nobody listens yet. */
async function databaseToCome(t: Test) {
  const { url } = await testDatabase(t);
  const port = await freePort();
  const { host, hostname } = new URL(url);
  const target = Number(new URL(url).port);
  const begin = async (): Promise<void> => {
    const server = createServer((socket) => {
      const upstream = connect(target, hostname);
      for (const [from, to] of [
        [socket, upstream],
        [upstream, socket],
      ] as const)
        from.on('error', () => to.destroy()).pipe(to);
    });
    t.teardown(() => server.close());
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  return { url: url.replace(host, `127.0.0.1:${port}`), begin };
}

function recordingLogger() {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { logger: createLogger({ level: 'info', format: 'json', destination }), logs: () => lines.join('') };
}

const patience = { timeoutMs: 30_000 };

t.test('a start waits for a database that is still to come, and says so', async (t) => {
  const { url: databaseUrl, begin } = await databaseToCome(t);
  const { logger, logs } = recordingLogger();
  const options = { databaseUrl, dbNamespace: 'auth', dbStartupTimeoutMs: 300_000 };
  const migrated = migrate(options, { logger });
  await awaitUntil(() => logs().includes('the database does not answer, trying again'), {
    what: 'the first failure to be logged',
    ...patience,
  });
  await begin();
  t.same(await migrated, [], 'the schema was there');
  t.match(logs(), /"problem":"no PostgreSQL answers at 127\.0\.0\.1:\d+/);
});

t.test('a service that stops waits no longer', async (t) => {
  const { url: databaseUrl } = await databaseToCome(t);
  const { logger, logs } = recordingLogger();
  const stopping = new AbortController();
  const options = { databaseUrl, dbNamespace: 'auth', dbStartupTimeoutMs: 300_000 };
  const migrated = t.rejects(migrate(options, { logger, signal: stopping.signal }), { name: 'AbortError' });
  await awaitUntil(() => logs().includes('trying again'), { what: 'the first failure', ...patience });
  stopping.abort();
  await migrated;
});

t.test('waiting does not help against a wrong name', async (t) => {
  const { url } = await testDatabase(t);
  const databaseUrl = new URL(url);
  databaseUrl.pathname = '/nowhere';
  const { logger, logs } = recordingLogger();
  const options = { databaseUrl: databaseUrl.href, dbNamespace: 'auth', dbStartupTimeoutMs: 300_000 };
  await t.rejects(migrate(options, { logger }), { message: /has no database nowhere/ });
  t.equal(logs(), '');
});

t.test('what went wrong is told with what to do, and without the password', (t) => {
  const tried = { databaseUrl: 'postgres://ada:geheim@db.example.com:5432/shop', dbNamespace: 'auth' };
  const failure = (code: string) => Object.assign(new Error('why'), { code });
  for (const [error, away, message] of [
    [failure('ENOTFOUND'), true, /^no PostgreSQL answers at db\.example\.com:5432\. .*: why$/],
    [failure('57P03'), true, /^no PostgreSQL answers/],
    [new Error('timeout expired'), true, /^no PostgreSQL answers/],
    [failure('28P01'), false, /refuses the user ada or the password of DATABASE_URL: why$/],
    [failure('3D000'), false, /has no database shop\. Create it/],
    [failure('42501'), false, /the user ada may not change the schema auth of database shop/],
    [failure('42601'), false, /^the schema auth of database shop at db\.example\.com:5432 could not be/],
  ] as const) {
    t.equal(isAway(error), away);
    const explained = explainStartFailure(error, tried);
    t.match(explained.message, message);
    t.equal(explained.cause, error);
    t.notMatch(explained.message, 'geheim');
  }
  const aggregate = new AggregateError([failure('ECONNREFUSED'), new Error('and why')], '');
  t.match(explainStartFailure(aggregate, tried).message, /: why; and why$/);
  t.match(
    explainStartFailure(failure('ECONNREFUSED'), { ...tried, databaseUrl: 'postgres://a,b/c' }).message,
    /^no/,
  );
  t.end();
});
