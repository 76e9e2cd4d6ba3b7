import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:http2';
import { promisify } from 'node:util';

/**
 * Clients whose requests never arrive completely. Each request that ends is followed by another.
 */
export interface IncompleteRequests {
  stop(): void;
}

/** Time until the next request after one was ended. */
const againMs = 50;

interface IncompleteCallsOptions {
  readonly port: number;
  /** Path of the gRPC method. */
  readonly path: string;
  readonly connections: number;
  /** Requests at the same time on each connection. */
  readonly streams: number;
  /** Size of the announced message; all of it is sent but its last byte. */
  readonly messageBytes: number;
  /** Size of a header that each request has beside the usual ones. */
  readonly headerBytes?: number;
}

/** Sends gRPC calls without their end, as fast as flow control allows. */
export function sendIncompleteCalls(options: IncompleteCallsOptions): IncompleteRequests {
  const { port, path, connections, streams, messageBytes, headerBytes = 0 } = options;
  const message = Buffer.alloc(messageBytes + 4, 1);
  message.writeUInt8(0, 0);
  message.writeUInt32BE(messageBytes, 1);
  const headers = {
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...(headerBytes > 0 && { 'x-padding': 'x'.repeat(headerBytes) }),
  };
  return keepSending(connections, (isStopped) => {
    const session = connect(`http://127.0.0.1:${port}`);
    session.on('error', () => undefined);
    const call = (): void => {
      if (isStopped() || session.closed || session.destroyed) return;
      const stream = session.request(headers);
      stream.on('error', () => undefined);
      stream.resume();
      stream.once('close', () => setTimeout(call, againMs));
      stream.write(message);
    };
    for (let i = 0; i < streams; i += 1) call();
    return session;
  });
}

interface IncompleteBodiesOptions {
  readonly url: string;
  readonly connections: number;
  /** Announced size; all of the body is sent but its last byte. */
  readonly bodyBytes: number;
}

/** Sends POST requests over HTTP/1.1 without the end of their bodies. */
export function sendIncompleteBodies(options: IncompleteBodiesOptions): IncompleteRequests {
  const { url, connections, bodyBytes } = options;
  const body = Buffer.alloc(bodyBytes - 1, ' ');
  const headers = { 'content-length': bodyBytes };
  return keepSending(connections, () => {
    const request = httpRequest(url, { method: 'POST', agent: false, headers });
    request.on('error', () => undefined);
    request.on('response', (response) => response.resume());
    request.write(body);
    return request;
  });
}

interface Connection {
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

/** Opens connections, and another one for each that is closed. */
function keepSending(
  connections: number,
  open: (isStopped: () => boolean) => Connection,
): IncompleteRequests {
  let stopped = false;
  const current = new Map<number, Connection>();
  const reopen = (index: number): void => {
    if (stopped) return;
    const connection = open(() => stopped);
    current.set(index, connection);
    connection.once('close', () => setTimeout(reopen, againMs, index));
  };
  for (let index = 0; index < connections; index += 1) reopen(index);
  return {
    stop() {
      stopped = true;
      for (const connection of current.values()) connection.destroy();
    },
  };
}

const run = promisify(execFile);

/** Resident memory of a process. Debian without more packages has no `ps`, and macOS no /proc. */
async function getResidentBytes(pid: number): Promise<number> {
  if (existsSync('/proc/self/status')) {
    const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
    if (kibibytes === undefined) throw new Error(`process ${pid} has ended`);
    return Number(kibibytes) * 1024;
  }
  const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) * 1024;
}

const sampleMs = 50;

/** The largest growth of the resident memory of a process while something runs. */
export async function measureGrowth(pid: number, run: () => Promise<void>): Promise<number> {
  const before = await getResidentBytes(pid);
  let peak = before;
  const sample = async () => {
    peak = Math.max(peak, await getResidentBytes(pid).catch(() => 0));
  };
  const sampler = setInterval(() => void sample(), sampleMs);
  try {
    await run();
    await sample();
  } finally {
    clearInterval(sampler);
  }
  return peak - before;
}
