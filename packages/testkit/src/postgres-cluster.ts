import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBinaries } from '@tollgate/embedded-postgres/binaries';
import { initializeCluster } from '@tollgate/embedded-postgres/initialize-cluster';
import { serverAccount } from '@tollgate/embedded-postgres/server-account';

/** What the tests of a checkout keep from run to run; `make clean` removes it. */
const keptFolder = join(import.meta.dirname, '../../../.tap');

/** Copying 40 MB takes a tenth of a second; a machine may be busy, and its disk full. */
const copyTimeoutMs = 60_000;

/**
 * Puts a new cluster without a password into an empty folder, where `startEmbeddedPostgres` finds it. Making one takes half a
 * second of CPU time, and a hundred files of tests want one each: the first is kept, and all others are copies of it.
 */
export async function putNewCluster(folder: string): Promise<void> {
  const account = serverAccount();
  const { initdb, postgres } = await findBinaries();
  const { size, mtimeMs } = await stat(postgres);
  // Of these programs, and readable by this user.
  const kept = join(keptFolder, `postgres-${size}-${Math.trunc(mtimeMs)}-${process.getuid?.() ?? 0}`);
  if (existsSync(kept)) {
    if (account) await chown(folder, account.uid, account.gid);
    return await copyFolder(kept, join(folder, 'data'));
  }
  const cluster = await initializeCluster({ folder, initdb, user: 'postgres', password: undefined, account });
  await keep(cluster, kept);
}

/** Under another name until it is whole: a test that runs at the same time may look. */
async function keep(cluster: string, kept: string): Promise<void> {
  await mkdir(keptFolder, { recursive: true });
  const unfinished = `${kept}.${process.pid}`;
  await copyFolder(cluster, unfinished);
  await rename(unfinished, kept).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true, force: true });
    // That test may have kept one as well.
    if (!existsSync(kept)) throw error;
  });
}

/** With owners and modes, on which PostgreSQL insists. */
async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to], { timeout: copyTimeoutMs });
}
