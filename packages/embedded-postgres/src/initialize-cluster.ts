import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The account of PostgreSQL; undefined for that of this process. */
export type ServerAccount = { readonly uid: number; readonly gid: number } | undefined;

/** User and group without privileges on Linux. */
const unprivilegedId = 65534;

/**
 * PostgreSQL refuses to run as root, so root runs it as an unprivileged user; other users run it as
 * themselves.
 */
export function serverAccount(userId: number | undefined = process.getuid?.()): ServerAccount {
  return userId === 0 ? { uid: unprivilegedId, gid: unprivilegedId } : undefined;
}

/** Options of a new cluster. */
export type ClusterOptions = {
  /** Parent folder of the cluster's folder `data`. */
  readonly folder: string;
  readonly initdb: string;
  readonly user: string;
  /** Password of the superuser; without one, all local users can connect. */
  readonly password: string | undefined;
  readonly account: ServerAccount;
};

const run = promisify(execFile);

const initdbTimeoutMs = 120_000;

/**
 * Answers the folder of the cluster, making the cluster first where there is none. It is made under
 * another name and moved when whole, so that a process killed half-way leaves nothing that looks
 * like a cluster.
 *
 * @throws Error with the output of initdb.
 */
export async function initializeCluster(options: ClusterOptions): Promise<string> {
  const { folder, account } = options;
  const cluster = join(folder, 'data');
  if (existsSync(join(cluster, 'PG_VERSION'))) return cluster;
  await mkdir(folder, { recursive: true });
  const unfinished = join(folder, 'data.new');
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  if (account) await Promise.all([folder, unfinished].map((path) => chown(path, account.uid, account.gid)));
  await runInitdb(unfinished, options);
  await rename(unfinished, cluster);
  return cluster;
}

async function runInitdb(
  target: string,
  { folder, initdb, user, password, account }: ClusterOptions,
): Promise<void> {
  const passwordFile = join(folder, 'initdb-password');
  const auth =
    password === undefined ? ['--auth=trust'] : ['--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  try {
    if (password !== undefined) {
      await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
      if (account) await chown(passwordFile, account.uid, account.gid);
    }
    await run(
      initdb,
      [`--pgdata=${target}`, `--username=${user}`, '--encoding=UTF8', '--locale=C', '--no-sync', ...auth],
      { ...account, cwd: folder, timeout: initdbTimeoutMs },
    );
  } catch (cause) {
    const output = (cause as { stderr?: string }).stderr ?? '';
    throw new Error(`PostgreSQL could not make a cluster in ${target}: ${output}${accessAdvice(account)}`, {
      cause,
    });
  } finally {
    await rm(passwordFile, { force: true });
  }
}

function accessAdvice(account: ServerAccount): string {
  return account === undefined
    ? ''
    : '\nAs root, PostgreSQL runs as the user nobody, who must be able to read this checkout and to reach that folder: choose folders outside of /root.';
}
