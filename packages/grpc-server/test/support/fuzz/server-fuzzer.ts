import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { programEnvironment } from '@tollgate/testkit/processes';
import { type FuzzCase, makeCase } from './mutations.ts';
import { Random } from './random.ts';
import { type Recording, readRecordings } from './recordings.ts';
import { ReplyChecker } from './reply-checker.ts';
import type { ServerMessage } from './server-process.ts';

/** Connections that are open at the same time, with their writes interleaved. */
const casesPerBatch = 48;

/** Collecting garbage takes as long as a batch. */
const batchesPerMemoryCheck = 25;

/** Bytes by which the heap and the memory of the server may grow after that. */
const heapSlackBytes = 8 * 1024 * 1024;
const rssSlackBytes = 150 * 1024 * 1024;

type State = Extract<ServerMessage, { connections: number }>;

/** A batch that the server did not survive, or answered wrongly. */
export class FuzzFailure extends Error {
  override readonly name = 'FuzzFailure';
  readonly seed: number;
  readonly cases: readonly FuzzCase[];

  constructor(message: string, seed: number, cases: readonly FuzzCase[]) {
    super(message);
    this.seed = seed;
    this.cases = cases;
  }
}

/** Runs batches of mutated sessions against a server in a process of its own. */
export class ServerFuzzer {
  readonly #child: ChildProcess;
  readonly #recordings: readonly Recording[] = readRecordings();
  #ports: readonly number[] = [];
  #clients: Client[] = [];
  #stderr = '';
  #base: State | undefined;
  batches = 0;
  cases = 0;

  constructor() {
    this.#child = fork(join(import.meta.dirname, 'server-process.ts'), {
      execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
      env: programEnvironment(),
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-10_000);
    });
  }

  async start(): Promise<void> {
    const [message] = (await once(this.#child, 'message')) as [ServerMessage];
    if (!('ports' in message)) throw new Error('the server did not send its ports');
    this.#ports = message.ports;
    this.#clients = this.#ports.map((port) => new Client(`127.0.0.1:${port}`, credentials.createInsecure()));
  }

  /** @throws FuzzFailure with the cases of the batch. */
  async runBatch(seed: number): Promise<void> {
    const random = new Random(seed);
    const cases = Array.from({ length: casesPerBatch }, () => makeCase(this.#recordings, random));
    try {
      await this.#write(cases, random);
      await Promise.all(this.#clients.map(callEcho));
      const state = await this.#settledState();
      if (state.internalErrors.length > 0)
        throw new Error(`internal error: ${state.internalErrors.join('\n')}`);
      if (this.batches % batchesPerMemoryCheck === 0) await this.#compareMemory();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const exit = this.#isRunning() ? '' : `; the server ended: ${this.#stderr}`;
      throw new FuzzFailure(`${reason}${exit}`, seed, cases);
    }
    this.batches++;
    this.cases += cases.length;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    if (!this.#isRunning()) return;
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }

  #isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Runs the connections of a batch, a piece of one of them at a time. */
  async #write(cases: readonly FuzzCase[], random: Random): Promise<void> {
    const connections = cases.map((one) => new FuzzConnection(one, random.pick(this.#ports)));
    const writing = new Set(connections);
    while (writing.size > 0) {
      const connection = random.pick([...writing]);
      for (let count = 1 + random.below(8); count > 0; count--) {
        if (!connection.writeNext()) writing.delete(connection);
      }
      if (random.chance(0.2)) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(connections.map((connection) => connection.finish()));
  }

  /** The state of the server once it has forgotten the connections of a batch. */
  async #settledState(): Promise<State> {
    let state = await this.#state();
    const isSettled = () => state.connections <= this.#clients.length && state.calls + state.watchers === 0;
    try {
      await awaitUntil(
        async () => {
          state = await this.#state();
          return isSettled();
        },
        { what: 'the server to forget the connections of a batch' },
      );
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : ''}: ${JSON.stringify(state)}`);
    }
    return state;
  }

  async #state(collectGarbage = false): Promise<State> {
    const ended = new AbortController();
    const exited = once(this.#child, 'exit', { signal: ended.signal }).then(() => {
      throw new Error('the server has ended');
    });
    exited.catch(() => undefined);
    this.#child.send(collectGarbage);
    const received = once(this.#child, 'message', { signal: AbortSignal.timeout(20_000) });
    const [message] = (await Promise.race([received, exited])) as [State];
    ended.abort();
    return message;
  }

  async #compareMemory(): Promise<void> {
    // The heap settles first: code is compiled, and lists grow to their bounds.
    if (this.batches === 0) return;
    const state = await this.#state(true);
    this.#base ??= state;
    const { heapBytes, rssBytes } = this.#base;
    if (state.heapBytes > heapBytes + heapSlackBytes)
      throw new Error(`leak: heap of ${state.heapBytes} bytes after ${heapBytes}`);
    if (state.rssBytes > rssBytes + rssSlackBytes)
      throw new Error(`leak: memory of ${state.rssBytes} bytes after ${rssBytes}`);
  }

  /** The memory of the server, for the report of a run. */
  async memory(): Promise<{
    heapBytes: number;
    rssBytes: number;
    baseHeapBytes: number;
    baseRssBytes: number;
  }> {
    const { heapBytes, rssBytes } = await this.#state(true);
    const base = this.#base ?? { heapBytes, rssBytes };
    return { heapBytes, rssBytes, baseHeapBytes: base.heapBytes, baseRssBytes: base.rssBytes };
  }
}

/** The client of one case. */
class FuzzConnection {
  readonly #case: FuzzCase;
  readonly #socket: Socket;
  readonly #checker = new ReplyChecker();
  readonly #closed: Promise<unknown>;
  #next = 0;

  constructor(fuzzCase: FuzzCase, port: number) {
    this.#case = fuzzCase;
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    // A reset is one of the answers.
    this.#socket.on('error', () => undefined);
    this.#socket.on('data', (chunk: Buffer) => this.#checker.read(chunk));
    if (fuzzCase.paused) this.#socket.pause();
    this.#closed = new Promise((resolve) => this.#socket.once('close', resolve));
  }

  /** @returns whether there is more to write. */
  writeNext(): boolean {
    const chunk = this.#case.chunks[this.#next++];
    if (chunk === undefined || this.#socket.destroyed) return false;
    this.#socket.write(chunk);
    return true;
  }

  /** Ends the connection as the case says, and waits until it is closed. */
  async finish(): Promise<void> {
    this.#socket.resume();
    if (this.#case.ending === 'end') this.#socket.end();
    else if (this.#case.ending === 'reset') this.#socket.resetAndDestroy();
    else {
      // Long enough for replies; the connection stays open while the others end.
      for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
      this.#socket.destroy();
    }
    const late = AbortSignal.timeout(20_000);
    await Promise.race([this.#closed, once(late, 'abort')]);
    if (late.aborted) throw new Error(`hang: a ${this.#case.recording} connection was not closed`);
    if (this.#checker.problem !== undefined) {
      throw new Error(`invalid reply to ${this.#case.recording}: ${this.#checker.problem}`);
    }
  }
}

/** A call of a client that behaves; it reconnects when its connection was drained. */
function callEcho(client: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      '/test.Echo/Later',
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      Buffer.from('healthy'),
      { deadline: Date.now() + 20_000 },
      (error, reply) => {
        if (reply?.toString() === 'healthy') resolve();
        else reject(new Error(`a healthy client got no reply: ${error?.message}`));
      },
    );
  });
}
