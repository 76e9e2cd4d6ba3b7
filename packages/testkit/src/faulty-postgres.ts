import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@tollgate/embedded-postgres/embedded-postgres';
import postgres from 'postgres';
import type { Test } from 'tap';
import { awaitUntil } from './await-until.ts';
import { temporaryFolder } from './folders.ts';
import { findBinary } from './processes.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** Enough for a cluster and its log. */
const diskMegabytes = 256;
const fillerBytes = 1024 * 1024;
const role = 'tollgate';

/** A durable PostgreSQL behind a proxy, with a disk of its own where the machine permits it. */
interface FaultyPostgres {
  /** Its role is not a superuser. */
  readonly url: string;
  readonly proxy: TcpProxy;
  /** Why its disk cannot be filled. */
  readonly noDisk: string | false;
  /** Runs a statement as a superuser, on a connection that passes the proxy by. */
  run(text: string): Promise<void>;
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** To every process of the server. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  fillDisk(): void;
  emptyDisk(): void;
}

export async function startFaultyPostgres(t: Test): Promise<FaultyPostgres> {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const noDisk = mountDisk(t, folder.path);
  // The server runs as another user if this process is root.
  chmodSync(folder.path, 0o755);
  const start = (): Promise<EmbeddedPostgres> => startEmbeddedPostgres({ folder: folder.path });
  let server = await start();
  t.teardown(async () => {
    // A stopped process does not end.
    if (process.platform === 'linux') signalAll('SIGCONT');
    await server.stop();
  });
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const filler = join(folder.path, 'filler');
  const postmaster = (): number =>
    Number(readFileSync(join(folder.path, 'data/postmaster.pid'), 'utf8').split('\n')[0]);

  function signalAll(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const pid = postmaster();
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    for (const one of [pid, ...children.map(Number)]) process.kill(one, signal);
  }

  async function run(text: string): Promise<void> {
    const admin = postgres(server.url('postgres'), { max: 1, onnotice: () => undefined });
    try {
      await admin.unsafe(text);
    } finally {
      await admin.end({ timeout: 1 });
    }
  }

  await run(`create role ${role} login`);
  await run(`create database ${role} owner ${role}`);
  return {
    url: `postgres://${role}@127.0.0.1:${proxy.port}/${role}`,
    proxy,
    noDisk,
    run,
    async kill() {
      process.kill(postmaster(), 'SIGKILL');
      await server.ended;
    },
    async restart() {
      // Its other processes end when they notice, and hold its shared memory until then.
      server = await awaitUntil(start, { what: 'PostgreSQL to start again', timeoutMs: 60_000 });
      proxy.redirect(server.port);
    },
    signal: signalAll,
    fillDisk() {
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(fillerBytes), { flag: 'a' });
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
      }
    },
    emptyDisk: () => rmSync(filler),
  };
}

/** Only root may mount, and not in every container. */
function mountDisk(t: Test, path: string): string | false {
  try {
    execFileSync(findBinary('mount'), ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m`, 'tmpfs', path], {
      stdio: 'pipe',
    });
  } catch {
    return 'needs the right to mount a small disk';
  }
  t.teardown(() => execFileSync(findBinary('umount'), [path]));
  return false;
}
