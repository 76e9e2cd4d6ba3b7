import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import * as http2 from '@tollgate/grpc-server/frames';
import { encodeHeaders } from '@tollgate/grpc-server/hpack/encoder';
import { type LoadResult, summarize } from './report.ts';

const { Flag, FrameType, frame, maxWindowBytes, defaultWindowBytes } = http2;
/**
 * Calls in flight on a connection; calls are skipped while a server does not keep up with the rate.
 * Servers allow at least as many streams (RFC 9113, section 6.5.2).
 */
const maxInFlight = 100;
const ringSize = 4 * maxInFlight;
const replyTimeoutMs = 10_000;

export interface GrpcLoad {
  /** `host:port`, without TLS. */
  readonly address: string;
  readonly path: string;
  readonly messages: readonly Uint8Array[];
  readonly connections: number;
  /** Calls in flight per connection, unless a rate (calls per second) is given. */
  readonly streams: number;
  readonly durationMs: number;
  readonly rate?: number;
}

/**
 * Sends calls and waits for their replies. Latency starts when a call is written to its socket.
 *
 * @throws Error when a call fails.
 */
export async function runGrpcLoad(load: GrpcLoad): Promise<LoadResult> {
  const { address, connections, streams, durationMs, rate } = load;
  const requests = load.messages.map((message) => encodeRequest(load, message));
  const run: Run = { requests, next: 0, repeats: rate === undefined, latenciesMs: [], error: undefined };
  const callers = Array.from({ length: connections }, () => new Connection(address, run));
  try {
    await Promise.all(callers.map((caller) => caller.open()));
    const startedAt = performance.now();
    const elapsedMs = () => performance.now() - startedAt;
    if (run.repeats) for (const caller of callers) caller.send(streams);
    for (let sent = 0; elapsedMs() < durationMs && run.error === undefined; await delay(1))
      for (; sent < (elapsedMs() * (rate ?? 0)) / 1000; sent += 1) callers[sent % connections]?.send(1);
    run.repeats = false;
    for (; callers.some(({ inFlight }) => inFlight > 0) && run.error === undefined; await delay(1))
      if (elapsedMs() > durationMs + replyTimeoutMs) throw new Error('gRPC load: a call got no reply');
    if (run.error !== undefined) throw run.error;
    return summarize(run.latenciesMs, elapsedMs());
  } finally {
    for (const caller of callers) caller.socket.destroy();
  }
}

interface Run {
  /** HEADERS and DATA for stream 0, and where DATA starts. */
  readonly requests: readonly { readonly bytes: Buffer; readonly dataAt: number }[];
  next: number;
  repeats: boolean;
  readonly latenciesMs: number[];
  error: Error | undefined;
}

function encodeRequest({ address, path }: GrpcLoad, message: Uint8Array): Run['requests'][number] {
  const block = encodeHeaders([
    ...Object.entries({ ':method': 'POST', ':scheme': 'http', ':path': path, ':authority': address }),
    ...Object.entries({ te: 'trailers', 'content-type': 'application/grpc' }),
  ]);
  const head = frame(FrameType.HEADERS, Flag.END_HEADERS, 0, block);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const data = frame(FrameType.DATA, Flag.END_STREAM, 0, Buffer.concat([prefix, message]));
  return { bytes: Buffer.concat([head, data]), dataAt: head.length };
}

/** Ignores the server's flow control: what is in flight fits the default windows. */
class Connection {
  inFlight = 0;
  readonly #run: Run;
  readonly #address: string;
  readonly socket;
  readonly #reader = new http2.FrameReader();
  readonly #sentAt = new Float64Array(ringSize);
  readonly #hasMessage = new Uint8Array(ringSize);
  #streamId = -1;
  #output: Uint8Array[] = [];

  constructor(address: string, run: Run) {
    const { hostname, port } = new URL(`http://${address}`);
    this.#run = run;
    this.#address = address;
    this.socket = connect(Number(port), hostname).setNoDelay();
    this.socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.socket.on('error', ({ message }) => this.#fail(message));
    this.socket.on('close', () => this.#fail('connection closed'));
  }

  async open(): Promise<void> {
    await once(this.socket, 'connect');
    const settings = http2.settingsFrame([[http2.Setting.INITIAL_WINDOW_SIZE, maxWindowBytes]]);
    const window = http2.numberFrame(FrameType.WINDOW_UPDATE, 0, maxWindowBytes - defaultWindowBytes);
    this.socket.write(Buffer.concat([http2.preface, settings, window]));
  }

  send(count: number): void {
    for (let i = 0; i < count; i += 1) this.#call(performance.now());
    this.#flush();
  }

  #call(now: number): void {
    const request = this.#run.requests[this.#run.next++ % this.#run.requests.length];
    if (request === undefined || this.inFlight === maxInFlight) return;
    this.inFlight += 1;
    this.#streamId += 2;
    const bytes = Buffer.from(request.bytes);
    this.#output.push(bytes);
    for (const at of [0, request.dataAt]) bytes.writeUInt32BE(this.#streamId, at + 5);
    this.#sentAt[this.#streamId % ringSize] = now;
    this.#hasMessage[this.#streamId % ringSize] = 0;
  }

  #flush(): void {
    if (this.#output.length > 0) this.socket.write(Buffer.concat(this.#output));
    this.#output = [];
  }

  #receive(chunk: Buffer): void {
    const now = performance.now();
    this.#reader.read(chunk, (type, flags, streamId, payload) => {
      const isFlagged = (flags & Flag.END_STREAM) !== 0;
      if (type === FrameType.DATA) this.#hasMessage[streamId % ringSize] = 1;
      else if (type === FrameType.HEADERS && isFlagged) this.#finish(streamId % ringSize, now);
      else if (type === FrameType.RST_STREAM)
        this.#fail(`a call was reset with error code ${payload.readUInt32BE(0)}`);
      else if ((type === FrameType.PING || type === FrameType.SETTINGS) && !isFlagged)
        this.#output.push(frame(type, Flag.ACK, 0, type === FrameType.PING ? payload : Buffer.alloc(0)));
    });
    this.#flush();
  }

  #finish(slot: number, now: number): void {
    // Without a message, the status is not OK.
    if (this.#hasMessage[slot] === 0) this.#fail('a call failed');
    this.#run.latenciesMs.push(now - (this.#sentAt[slot] ?? 0));
    this.inFlight -= 1;
    if (this.#run.repeats) this.#call(now);
  }

  #fail(reason: string): void {
    this.#run.error ??= new Error(`gRPC load: ${this.#address}: ${reason}`);
    this.#run.repeats = false;
  }
}
