import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';

/** How the stub answers one call. */
export interface StubAnswer {
  /** Serialized message; absent for an answer of trailers only. */
  message?: Buffer;
  trailers: OutgoingHttpHeaders;
}

/** A gRPC server that answers what a test says. */
export interface StubServer {
  readonly port: number;
  /** Header fields of each call, in the order of arrival. */
  readonly requests: IncomingHttpHeaders[];
  /** From now on, answers nothing until this many calls have come in all; then answers them at once. */
  holdUntil(calls: number): void;
  close(): Promise<void>;
}

/** Starts a stub on a free port of the loopback address; `answer` gets the number of the call, from 0. */
export async function startStubServer(answer: (call: number) => StubAnswer | 'reset'): Promise<StubServer> {
  const server = createServer();
  const requests: IncomingHttpHeaders[] = [];
  const sessions = new Set<{ destroy(): void }>();
  const held: (() => void)[] = [];
  let release = 0;
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    stream.resume();
    stream.on('end', () => {
      const call = requests.push(headers) - 1;
      held.push(() => respond(stream, answer(call)));
      if (requests.length < release) return;
      for (const respondNow of held.splice(0)) respondNow();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    requests,
    holdUntil: (calls) => {
      release = calls;
    },
    async close() {
      for (const session of sessions) session.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
}

function respond(stream: ServerHttp2Stream, answer: StubAnswer | 'reset'): void {
  const headers = { ':status': 200, 'content-type': 'application/grpc' };
  if (answer === 'reset') {
    stream.close(8);
  } else if (answer.message === undefined) {
    stream.respond({ ...headers, ...answer.trailers }, { endStream: true });
  } else {
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(answer.message.length, 1);
    stream.respond(headers, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers(answer.trailers));
    stream.end(Buffer.concat([prefix, answer.message]));
  }
}
