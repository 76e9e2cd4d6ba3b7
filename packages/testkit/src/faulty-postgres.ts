import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
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
export interface FaultyPostgres {
  /** Its role is not a superuser. */
  readonly url: string;
  readonly proxy: TcpProxy;
  /** Why its disk cannot be filled. */
  readonly noDisk: string | false;
  /** Runs a statement as a superuser, on a connection that passes the proxy by. */
  run(text: string): Promise<void>;
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Sends the signal to every process of the server. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  fillDisk(): void;
  /** Writes the log of the server to its end. It panics where the disk is full. */
  switchLog(): Promise<void>;
  /** Starts the server again if it has panicked and ended. */
  emptyDisk(): Promise<void>;
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

  async function restart(): Promise<void> {
    // Its other processes end when they notice, and hold its shared memory until then.
    server = await awaitUntil(start, { what: 'PostgreSQL to start again', timeoutMs: 60_000 });
    proxy.redirect(server.port);
  }

  /** After a panic the server recovers, or ends where it cannot even write that. */
  async function recover(): Promise<true> {
    const isRunning = await Promise.race([server.ended.then(() => false), delay(0, true)]);
    if (!isRunning) await restart();
    await run('select 1');
    return true;
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
    restart,
    signal: signalAll,
    fillDisk() {
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(fillerBytes), { flag: 'a' });
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
      }
    },
    // Its connection is lost with the server.
    switchLog: () => run('select pg_switch_wal()').catch(() => undefined),
    async emptyDisk() {
      rmSync(filler);
      await awaitUntil(recover, { what: 'PostgreSQL to recover', timeoutMs: 60_000, everyMs: 100 });
    },
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
