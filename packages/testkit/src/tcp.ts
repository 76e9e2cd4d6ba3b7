import { createConnection, type NetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { isFree } from '@tollgate/kit/server-process';

/** Time for a local server to respond. */
const responseTimeoutMs = 30_000;

/**
 * Sends a text over a new connection (TLS with `tls`) and resolves with the first chunk of the
 * response.
 *
 * @throws Error when the connection fails, ends or has no response within 30 seconds.
 */
export function sendTcp(text: string, target: NetConnectOpts, tls?: ConnectionOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tls === undefined ? createConnection(target) : connectTls({ ...target, ...tls });
    const settle = (finish: () => void) => {
      socket.destroy();
      finish();
    };
    socket.setTimeout(responseTimeoutMs, () => settle(() => reject(new Error('no response within 30 s'))));
    socket.once('error', (error) => settle(() => reject(error)));
    socket.once('close', () => reject(new Error('the connection was closed without a response')));
    socket.once('data', (chunk) => settle(() => resolve(chunk.toString('latin1'))));
    socket.write(text);
  });
}

/**
 * Below the ephemeral ports that systems assign to outgoing connections and to port 0: one of those
 * may be taken before a program listens.
 */
const range = { first: 11_000, count: 20_000 };

/**
 * Concurrent test files use separate parts of the range, so that none takes a port that another is
 * about to listen on.
 */
const parts = 4;

const maxTries = 20;

/** Assigned in sequence, so that no two callers in this process get the same port. */
let next: number | undefined;

/**
 * A TCP port that was free a moment ago on every address. Only for programs that cannot use port 0;
 * another process may take it first, so callers retry on a collision.
 */
export async function freePort(): Promise<number> {
  const count = range.count / parts;
  // hack/run-tests numbers concurrent processes from 0.
  const part = Number(process.env.TAP_JOB_ID ?? 0) % parts;
  next ??= Math.floor(Math.random() * count);
  for (let tries = 0; tries < maxTries; tries += 1) {
    const port = range.first + part * count + next;
    next = (next + 1) % count;
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${range.first} on is free`);
}

/**
 * Two processes rarely choose the same port at the same moment; three times in a row indicates
 * another problem.
 */
const attempts = 3;

/**
 * Starts a program on a free port, and retries on another one when the port was taken meanwhile.
 */
export async function withFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort());
    } catch (error) {
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || attempt === attempts) throw error;
    }
  }
}
