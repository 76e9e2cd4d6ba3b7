import { type FaultyPostgres, startFaultyPostgres } from '@tollgate/testkit/faulty-postgres';
import { type AuthServer, startAuthServer } from '@tollgate/testkit/services';
import { startTcpProxy } from '@tollgate/testkit/tcp-proxy';
import t from 'tap';
import { AccountWriter } from './support/account-writer.ts';
import { checkMatrix } from './support/fault-matrix.ts';
import { type Fault, holdBack, networkFaults, surviveFaults } from './support/ledger.ts';

const writers = 3;

function postgresFaults(database: FaultyPostgres): readonly Fault[] {
  const disconnect = `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'tollgate'`;
  const { proxy } = database;
  return [
    {
      name: 'PostgreSQL is killed',
      cell: ['PostgreSQL', 'kill -9'],
      effect: 'writes fail',
      begin: () => database.kill(),
      end: () => database.restart(),
    },
    {
      name: 'PostgreSQL is stopped by SIGSTOP',
      cell: ['PostgreSQL', 'SIGSTOP'],
      effect: 'writes fail',
      begin: () => database.signal('SIGSTOP'),
      end: () => database.signal('SIGCONT'),
      skip: process.platform !== 'linux' && 'finds processes in /proc',
    },
    holdBack(proxy, { name: 'PostgreSQL', effect: 'writes fail' }),
    ...networkFaults('PostgreSQL', proxy, { effect: 'writes fail' }),
    {
      name: 'the disk of PostgreSQL is full',
      cell: ['PostgreSQL', 'storage full'],
      effect: 'writes fail',
      begin: () => database.fillDisk(),
      end: () => database.emptyDisk(),
      skip: database.noDisk,
    },
    {
      name: 'PostgreSQL panics because its log cannot grow',
      effect: 'writes fail',
      async begin() {
        database.fillDisk();
        await database.switchLog();
      },
      end: () => database.emptyDisk(),
      skip: database.noDisk,
    },
    {
      name: 'PostgreSQL is read-only',
      cell: ['PostgreSQL', 'read-only'],
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
      cell: ['PostgreSQL', 'connections exhausted'],
      effect: 'writes fail',
      async begin() {
        await database.run('alter role tollgate connection limit 0');
        await database.run(disconnect);
      },
      end: () => database.run('alter role tollgate connection limit -1'),
    },
  ];
}

function authFaults(auth: AuthServer): readonly Fault[] {
  return [
    {
      name: 'the auth server is killed',
      cell: ['auth', 'kill -9'],
      effect: 'writes fail',
      begin: auth.kill,
      end: auth.restart,
    },
    {
      name: 'the auth server is stopped by SIGSTOP',
      cell: ['auth', 'SIGSTOP'],
      effect: 'nothing',
      begin: () => void process.kill(auth.pid, 'SIGSTOP'),
      end: () => void process.kill(auth.pid, 'SIGCONT'),
    },
  ];
}

t.test('no acknowledged write is lost when PostgreSQL or the auth server fail', async (t) => {
  const database = await startFaultyPostgres(t);
  const auth = await startAuthServer(database.url, {
    // Writes that wait for PostgreSQL fail soon.
    SVC_API_MAX_REQUEST_DURATION: '2s',
    // The answer to a refresh may be lost.
    SVC_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '10m',
  });
  t.teardown(auth.stop);
  const proxy = await startTcpProxy(Number(new URL(auth.url).port));
  t.teardown(proxy.stop);
  const url = `http://127.0.0.1:${proxy.port}`;
  const faults = [
    ...postgresFaults(database),
    ...authFaults(auth),
    ...networkFaults('auth', proxy, { name: 'the auth server', effect: 'writes fail' }),
  ];
  checkMatrix(t, ['PostgreSQL', 'auth'], faults);
  const accounts = Array.from({ length: writers }, () => AccountWriter.signUp(url));
  await surviveFaults(t, await Promise.all(accounts), faults);
});
