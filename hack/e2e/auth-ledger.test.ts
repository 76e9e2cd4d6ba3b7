import { startFaultyPostgres } from '@tollgate/testkit/faulty-postgres';
import { startAuthServer } from '@tollgate/testkit/services';
import t from 'tap';
import { AccountWriter } from './support/account-writer.ts';
import { surviveFaults } from './support/ledger.ts';

const writers = 3;

t.test('no acknowledged write is lost when PostgreSQL or the auth server fail', async (t) => {
  const database = await startFaultyPostgres(t);
  const auth = await startAuthServer(database.url, {
    // Writes that wait for PostgreSQL fail soon.
    SVC_API_MAX_REQUEST_DURATION: '2s',
    // The answer to a refresh may be lost.
    SVC_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '10m',
  });
  t.teardown(auth.stop);
  const disconnect = `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'tollgate'`;
  const { proxy } = database;
  await surviveFaults(
    t,
    await Promise.all(Array.from({ length: writers }, () => AccountWriter.signUp(auth.url))),
    [
      {
        name: 'PostgreSQL is killed',
        effect: 'writes fail',
        begin: () => database.kill(),
        end: () => database.restart(),
      },
      {
        name: 'PostgreSQL is stopped by SIGSTOP',
        effect: 'writes fail',
        begin: () => database.signal('SIGSTOP'),
        end: () => database.signal('SIGCONT'),
        skip: process.platform !== 'linux' && 'finds processes in /proc',
      },
      {
        name: 'the network to PostgreSQL loses everything',
        effect: 'writes fail',
        begin: () => proxy.set('hold'),
        end: () => proxy.set('forward'),
      },
      {
        name: 'the network to PostgreSQL resets connections',
        effect: 'writes fail',
        begin: () => proxy.set('refuse'),
        end: () => proxy.set('forward'),
      },
      {
        name: 'PostgreSQL is slow',
        effect: 'writes go on',
        begin: () => proxy.slowDown(25),
        end: () => proxy.slowDown(0),
      },
      {
        name: 'the disk of PostgreSQL is full',
        effect: 'writes fail',
        begin: () => database.fillDisk(),
        end: () => database.emptyDisk(),
        skip: database.noDisk,
      },
      {
        name: 'PostgreSQL is read-only',
        effect: 'writes fail',
        async begin() {
          await database.run('alter system set default_transaction_read_only = on');
          await database.run('select pg_reload_conf()');
        },
        async end() {
          await database.run('alter system reset default_transaction_read_only');
          await database.run('select pg_reload_conf()');
        },
      },
      {
        name: 'PostgreSQL has no free connection',
        effect: 'writes fail',
        async begin() {
          await database.run('alter role tollgate connection limit 0');
          await database.run(disconnect);
        },
        end: () => database.run('alter role tollgate connection limit -1'),
      },
      { name: 'the auth server is killed', effect: 'writes fail', begin: auth.kill, end: auth.restart },
      {
        name: 'the auth server is stopped by SIGSTOP',
        effect: 'nothing',
        begin: () => void process.kill(auth.pid, 'SIGSTOP'),
        end: () => void process.kill(auth.pid, 'SIGCONT'),
      },
    ],
  );
});
