import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { freePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import t from 'tap';
import { isTransient } from '../../src/db/failures.ts';
import { explainMigrationFailure, migrate } from '../../src/db/migrate.ts';
import { testDatabase } from '../helpers/test-database.ts';

/** A database behind a port that is not open yet. */
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

t.test('the start waits for the database and logs it', async (t) => {
  const { url: databaseUrl, begin } = await databaseToCome(t);
  const { logger, logs } = recordingLogger();
  const options = { databaseUrl, dbNamespace: 'auth', dbStartupTimeoutMs: 300_000 };
  const migrated = migrate(options, { logger });
  await awaitUntil(() => logs().includes('database unavailable, retrying'), {
    what: 'the first failure to be logged',
  });
  await begin();
  t.same(await migrated, [], 'the schema was there');
  t.match(logs(), /"problem":"PostgreSQL is not reachable at 127\.0\.0\.1:\d+/);
});

t.test('a stop ends the wait', async (t) => {
  const { url: databaseUrl } = await databaseToCome(t);
  const { logger, logs } = recordingLogger();
  const stopping = new AbortController();
  const options = { databaseUrl, dbNamespace: 'auth', dbStartupTimeoutMs: 300_000 };
  const migrated = t.rejects(migrate(options, { logger, signal: stopping.signal }), { name: 'AbortError' });
  await awaitUntil(() => logs().includes('retrying'), { what: 'the first failure' });
  stopping.abort();
  await migrated;
});

t.test('a wrong database name is not retried', async (t) => {
  const { url } = await testDatabase(t);
  const databaseUrl = new URL(url);
  databaseUrl.pathname = '/nowhere';
  const { logger, logs } = recordingLogger();
  const options = { databaseUrl: databaseUrl.href, dbNamespace: 'auth', dbStartupTimeoutMs: 300_000 };
  await t.rejects(migrate(options, { logger }), { message: /has no database nowhere/ });
  t.equal(logs(), '');
});

t.test('errors explain what to do, without the password', (t) => {
  const tried = { databaseUrl: 'postgres://ada:geheim@db.example.com:5432/shop', dbNamespace: 'auth' };
  const failure = (code: string) => Object.assign(new Error('why'), { code });
  for (const [error, away, message] of [
    [failure('ENOTFOUND'), true, /^PostgreSQL is not reachable at db\.example\.com:5432: .*: why$/],
    [failure('57P03'), true, /^PostgreSQL is not reachable/],
    [new Error('timeout expired'), true, /^PostgreSQL is not reachable/],
    [failure('28P01'), false, /rejected the user ada or the password of DATABASE_URL: why$/],
    [failure('3D000'), false, /has no database shop: create it/],
    [failure('42501'), false, /the user ada is not allowed to change the schema auth of database shop/],
    [failure('42601'), false, /^failed to migrate the schema auth of database shop at db\.example\.com:5432/],
  ] as const) {
    t.equal(isTransient(error), away);
    const explained = explainMigrationFailure(error, tried);
    t.match(explained.message, message);
    t.equal(explained.cause, error);
    t.notMatch(explained.message, 'geheim');
  }
  const aggregate = new AggregateError([failure('ECONNREFUSED'), new Error('and why')], '');
  t.match(explainMigrationFailure(aggregate, tried).message, /: why; and why$/);
  t.match(
    explainMigrationFailure(failure('ECONNREFUSED'), { ...tried, databaseUrl: 'postgres://a,b/c' }).message,
    /^PostgreSQL is not reachable at a,b:/,
  );
  t.end();
});
