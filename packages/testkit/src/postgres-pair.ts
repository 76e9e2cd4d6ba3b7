import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '@tollgate/embedded-postgres/embedded-postgres';
import { serverAccount } from '@tollgate/embedded-postgres/initialize-cluster';
import postgres from 'postgres';
import { awaitUntil } from './await-until.ts';
import { temporaryFolder } from './folders.ts';
import { putNewCluster, startPostgres, type TestPostgres } from './postgres.ts';

/** A PostgreSQL that streams from a primary and answers reads. */
interface TestStandby {
  readonly port: number;
  /** Waits until everything that the primary has committed is here. */
  catchUp(): Promise<void>;
  /** Makes it accept writes; resolves when it does. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

export interface PostgresPair {
  readonly primary: TestPostgres;
  readonly standby: TestStandby;
  /** The primary refuses writes from now on, on open connections as well. */
  demote(): Promise<void>;
  stop(): Promise<void>;
}

const replication = { wal_level: 'replica', max_wal_senders: '10' };
const adminUrl = (port: number): string => `postgres://postgres@127.0.0.1:${port}/postgres`;

/** Starts a primary and a standby. */
export async function startPostgresPair(): Promise<PostgresPair> {
  const primary = await startPostgres({ parameters: replication });
  const standby = await startStandby(primary);
  return {
    primary,
    standby,
    async demote() {
      const admin = postgres(adminUrl(primary.port), { max: 1 });
      await admin`alter system set default_transaction_read_only = on`;
      await admin`select pg_reload_conf()`;
      await awaitUntil(
        async () =>
          (await admin`show default_transaction_read_only`)[0]?.default_transaction_read_only === 'on',
        { what: 'the primary to be read-only' },
      );
      await admin.end();
    },
    async stop() {
      await standby.stop();
      await primary.stop();
    },
  };
}

async function startStandby(primary: TestPostgres): Promise<TestStandby> {
  const folder = temporaryFolder();
  // A copy of the cluster that the primary began with, so that it can replay all of its log.
  await putNewCluster(folder.path);
  const signal = join(folder.path, 'data/standby.signal');
  await writeFile(signal, '');
  const account = serverAccount();
  if (account) await chown(signal, account.uid, account.gid);
  const server = await startEmbeddedPostgres({
    folder: folder.path,
    durable: false,
    parameters: { ...replication, primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres` },
  });
  const admin = postgres(adminUrl(server.port), { max: 1 });
  return {
    port: server.port,
    async catchUp() {
      const source = postgres(adminUrl(primary.port), { max: 1 });
      const [row] = await source`select pg_current_wal_insert_lsn()::text as lsn`;
      await source.end();
      await awaitUntil(
        async () =>
          (await admin`select pg_last_wal_replay_lsn() >= ${row?.lsn}::pg_lsn as done`)[0]?.done === true,
        { what: 'the standby to catch up' },
      );
    },
    async promote() {
      await admin`select pg_promote(true, 60)`;
    },
    async stop() {
      await admin.end({ timeout: 0 });
      await server.stop();
      folder.remove();
    },
  };
}
