import { once } from 'node:events';
import { connect } from 'node:net';

/** What came back. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/** One connection that asks one thing after the other. */
export interface HttpConnection {
  /** Sends the bytes of a request and waits for the answer, which must have a `content-length`. */
  ask(request: Buffer): Promise<HttpAnswer>;
  close(): void;
}

const headEnd = Buffer.from('\r\n\r\n');

/**
 * Opens a connection of HTTP/1.1 that does no more than a load generator needs: the general clients take more CPU for a request
 * than the server that is measured.
 */
export async function openHttpConnection(port: number): Promise<HttpConnection> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  let received: Buffer = Buffer.alloc(0);
  let waiting: PromiseWithResolvers<HttpAnswer> | undefined;

  socket.on('data', (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const read = readAnswer(received);
    if (read === undefined || waiting === undefined) return;
    received = received.subarray(read.length);
    const { resolve } = waiting;
    waiting = undefined;
    resolve(read.answer);
  });
  const fail = (error?: Error): void =>
    waiting?.reject(error ?? new Error('the server closed the connection'));
  socket.once('error', fail);
  socket.once('close', () => fail());

  return {
    ask(request) {
      waiting = Promise.withResolvers<HttpAnswer>();
      socket.write(request);
      return waiting.promise;
    },
    close: () => socket.destroy(),
  };
}

/** The answer that these bytes begin with, once it is whole, and how many of them it takes. */
function readAnswer(bytes: Buffer): { answer: HttpAnswer; length: number } | undefined {
  const end = bytes.indexOf(headEnd);
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const status = Number(head.slice(9, 12));
  const bodyBytes = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  const bodyStart = end + headEnd.length;
  const length = bodyStart + bodyBytes;
  if (bytes.length < length) return undefined;
  return { answer: { status, body: bytes.toString('utf8', bodyStart, length) }, length };
}

/** The bytes of a request; a body is JSON. */
export function requestBytes(
  method: string,
  path: string,
  options: { readonly token?: string | undefined; readonly body?: unknown } = {},
): Buffer {
  const body = options.body === undefined ? '' : JSON.stringify(options.body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    ...(options.token === undefined ? [] : [`authorization: Bearer ${options.token}`]),
    ...(body === '' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
