import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBinaries } from '@tollgate/embedded-postgres/binaries';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '@tollgate/embedded-postgres/embedded-postgres';
import { initializeCluster, serverAccount } from '@tollgate/embedded-postgres/initialize-cluster';
import type { Sql } from 'postgres';
import postgres from 'postgres';
import { awaitUntil } from './await-until.ts';
import { temporaryFolder } from './folders.ts';

/** Cache of the tests of a checkout; `make clean` removes it. */
const keptFolder = join(import.meta.dirname, '../../../.tap');

const copyTimeoutMs = 60_000;

/**
 * Puts a new cluster without a password into an empty folder, for `startEmbeddedPostgres`. Creating
 * one takes half a second of CPU time, and a hundred test files need one each, so all are copies of
 * a cached one.
 */
export async function putNewCluster(folder: string): Promise<void> {
  const account = serverAccount();
  const { initdb, postgres } = await findBinaries();
  const { size, mtimeMs } = await stat(postgres);
  // Specific to these programs and this user.
  const kept = join(keptFolder, `postgres-${size}-${Math.trunc(mtimeMs)}-${process.getuid?.() ?? 0}`);
  if (existsSync(kept)) {
    if (account) await chown(folder, account.uid, account.gid);
    return await copyFolder(kept, join(folder, 'data'));
  }
  const cluster = await initializeCluster({ folder, initdb, user: 'postgres', password: undefined, account });
  await keep(cluster, kept);
}

/** Renamed when complete: another test may look at the same time. */
async function keep(cluster: string, kept: string): Promise<void> {
  await mkdir(keptFolder, { recursive: true });
  const unfinished = `${kept}.${process.pid}`;
  await copyFolder(cluster, unfinished);
  await rename(unfinished, kept).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true, force: true });
    // The other test may have cached one as well.
    if (!existsSync(kept)) throw error;
  });
}

/** Preserves owners and modes, which PostgreSQL checks. */
async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to], { timeout: copyTimeoutMs });
}

/** A database of one test. */
export interface TestDatabase {
  /** Connection string of a superuser. */
  readonly url: string;
  /** Disconnects clients and drops the database. Idempotent. */
  drop(): Promise<void>;
}

/** A running PostgreSQL without durability. */
export interface TestPostgres {
  readonly host: string;
  readonly port: number;
  /** Creates an empty database. */
  createDatabase(): Promise<TestDatabase>;
  /**
   * Creates a database like one that `prepare` has filled. `prepare` runs once per server and
   * `name`; the copies are quick.
   */
  createDatabaseFrom(name: string, prepare: (url: string) => Promise<void>): Promise<TestDatabase>;
  /**
   * Creates an empty database of that name, owned by a role of the same name that is not a
   * superuser.
   */
  createOwnedDatabase(name: string, password: string): Promise<void>;
  /** Offers TLS from now on, with this certificate (PEM). */
  speakTls(pair: { readonly cert: string; readonly key: string }): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL without durability. It takes about half a second: start one for a file of
 * tests and give each test a database of its own.
 */
export async function startPostgres(
  options: Pick<EmbeddedPostgresOptions, 'maxConnections' | 'parameters'> = {},
): Promise<TestPostgres> {
  const folder = temporaryFolder();
  await putNewCluster(folder.path);
  const server = await startEmbeddedPostgres({ folder: folder.path, durable: false, ...options });
  const admin = postgres(server.url('postgres'), { max: 1, onnotice: () => undefined });
  const templates = new Map<string, Promise<void>>();
  let databases = 0;

  async function create(template?: string): Promise<TestDatabase> {
    const name = `test_${++databases}`;
    await admin`create database ${admin(name)} ${template === undefined ? admin`` : admin`template ${admin(template)} strategy file_copy`}`;
    return { url: server.url(name), drop: () => drop(admin, name) };
  }

  return {
    host: server.host,
    port: server.port,
    createDatabase: () => create(),
    async createDatabaseFrom(name, prepare) {
      const template = `template_${name}`;
      const ready = templates.get(name) ?? makeTemplate(admin, server, { template, prepare });
      templates.set(name, ready);
      await ready;
      return create(template);
    },
    async createOwnedDatabase(name, password) {
      // That statement does not accept parameters.
      await admin`create role ${admin(name)} login password ${admin.unsafe(`'${password.replaceAll("'", "''")}'`)}`;
      await admin`create database ${admin(name)} owner ${admin(name)}`;
    },
    async speakTls({ cert, key }) {
      // The server may run as another user, with files in its data folder.
      for (const [file, pem] of [
        ['server.crt', cert],
        ['server.key', key],
      ] as const) {
        const lines = `select unnest(string_to_array('${pem.trim()}', E'\\n'))`;
        await admin.unsafe(`copy (${lines}) to program 'umask 077; cat > ${file}'`);
      }
      await admin`alter system set ssl = on`;
      await admin`select pg_reload_conf()`;
      await awaitUntil(async () => (await admin`show ssl`)[0]?.ssl === 'on', { what: 'TLS of PostgreSQL' });
    },
    async stop() {
      await admin.end({ timeout: 0 });
      await server.stop();
      folder.remove();
    },
  };
}

async function makeTemplate(
  admin: Sql,
  server: EmbeddedPostgres,
  { template, prepare }: { template: string; prepare: (url: string) => Promise<void> },
): Promise<void> {
  await admin`create database ${admin(template)}`;
  await prepare(server.url(template));
}

async function drop(admin: Sql, name: string): Promise<void> {
  await admin`drop database if exists ${admin(name)} with (force)`;
}
