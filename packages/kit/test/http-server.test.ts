import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import type { HttpServerLimits } from '@tollgate/kit/http-connections';
import { HttpServer } from '@tollgate/kit/http-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import type { Test } from 'tap';
import t from 'tap';
import { readRequestBody } from '../src/body.ts';
import { nameListenSettings } from '../src/http-server.ts';

const request = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

interface Connection {
  readonly socket: Socket;
  /** All that was received until the other side closed. */
  readonly closed: Promise<string>;
}

async function open(t: Test, port: number): Promise<Connection> {
  return listenTo(t, connect(port, '127.0.0.1'), 'connect');
}

async function listenTo(
  t: Test,
  socket: Socket,
  connected: 'connect' | 'secureConnect',
): Promise<Connection> {
  t.teardown(() => socket.destroy());
  let received = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  // A reset ends a connection as well.
  socket.on('error', () => undefined);
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)));
  await once(socket, connected);
  return { socket, closed };
}

function serverOver(t: Test, server: Server, limits?: HttpServerLimits): HttpServer {
  t.teardown(() => void server.close().closeAllConnections());
  return new HttpServer(
    {
      server,
      listen: (where) => once(server.listen(where), 'listening'),
      close: () => new Promise((resolve) => server.close(resolve)),
    },
    { host: '127.0.0.1', port: 0 },
    limits,
  );
}

/** Never aborts: a stop that needs it does not end, and the test with it. */
const patient = new AbortController().signal;

t.test('silent and idle connections do not delay a stop', async (t) => {
  const server = createServer((_request, answer) => void answer.end('hello'));
  const http = serverOver(t, server);
  const port = await http.start();
  const accepted = once(server, 'connection');
  const silent = await open(t, port);
  await accepted;
  const idle = await open(t, port);
  idle.socket.write(request);
  await once(idle.socket, 'data');

  await http.stop(patient);
  t.equal(await silent.closed, '');
  t.match(await idle.closed, /Connection: keep-alive[\s\S]*hello/);
});

t.test('a request in flight is completed with Connection: close', async (t) => {
  const server = createServer();
  const http = serverOver(t, server);
  const client = await open(t, await http.start());
  client.socket.write(request);
  const [, answer] = await once(server, 'request');

  const stopped = http.stop(patient);
  answer.end('done');
  t.match(await client.closed, /Connection: close[\s\S]*done/);
  await stopped;
});

t.test('a response under way is completed, and its connection closed', async (t) => {
  const server = createServer();
  const http = serverOver(t, server);
  const client = await open(t, await http.start());
  client.socket.write(request);
  const [, answer] = await once(server, 'request');
  answer.write('first half, ');
  await once(client.socket, 'data');

  const stopped = http.stop(patient);
  answer.end('second half');
  t.match(await client.closed, /keep-alive[\s\S]*first half, [\s\S]*second half/);
  await stopped;
});

t.test('all pipelined requests are completed', async (t) => {
  const server = createServer();
  const http = serverOver(t, server);
  const client = await open(t, await http.start());
  const answers: { end(text: string): void }[] = [];
  const both = new Promise<void>((resolve) =>
    server.on('request', (_request, answer) => {
      if (answers.push(answer) === 2) resolve();
    }),
  );
  client.socket.write(request + request);
  await both;

  const stopped = http.stop(patient);
  for (const [index, answer] of answers.entries()) answer.end(`answer ${index}`);
  t.match(await client.closed, /keep-alive[\s\S]*answer 0[\s\S]*Connection: close[\s\S]*answer 1/);
  await stopped;
});

t.test('a TLS handshake that never began does not delay a stop', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server: pair } = certificates;
  // Longer than any test takes.
  const server = createTlsServer({ cert: pair.cert, key: pair.key, handshakeTimeout: 3_600_000 });
  const http = serverOver(t, server);
  const port = await http.start();
  const accepted = once(server, 'connection');
  const silent = await open(t, port);
  await accepted;
  const idle = await listenTo(t, connectTls({ port, host: 'localhost', ca: ca.cert }), 'secureConnect');
  await http.stop(patient);
  t.same([await silent.closed, await idle.closed], ['', '']);
});

t.test('over TLS, a request in flight is completed and a silent connection closed', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server: pair } = certificates;
  const server = createTlsServer({ cert: pair.cert, key: pair.key });
  const http = serverOver(t, server);
  const port = await http.start();
  const openTls = (): Promise<Connection> =>
    listenTo(t, connectTls({ port, host: 'localhost', ca: ca.cert }), 'secureConnect');
  const accepted = once(server, 'secureConnection');
  const silent = await openTls();
  await accepted;
  const asking = await openTls();
  asking.socket.write(request);
  const [, answer] = await once(server, 'request');

  const stopped = http.stop(patient);
  answer.end('done');
  t.match(await asking.closed, /Connection: close[\s\S]*done/);
  t.equal(await silent.closed, '');
  await stopped;
});

t.test('after closeAfterAnswers, connections and requests are still accepted', async (t) => {
  const answers: (() => void)[] = [];
  const http = serverOver(
    t,
    createServer((_request, answer) => void answers.push(() => answer.end('hello'))),
  );
  const port = await http.start();
  const before = await open(t, port);
  before.socket.write(request);
  await awaitUntil(() => answers.length === 1, { what: 'the request' });
  http.closeAfterAnswers();
  const after = await open(t, port);
  after.socket.write(request);
  await awaitUntil(() => answers.length === 2, { what: 'the request on a new connection' });
  for (const answer of answers) answer();
  for (const { closed } of [before, after])
    t.match(
      await closed,
      /^HTTP\/1\.1 200 OK\r\n(?:.*\r\n)*connection: close\r\n(?:.*\r\n)*\r\n(?:.*\r\n)?hello/i,
    );
  await http.stop(patient);
});

t.test('at the bound a new connection closes the oldest idle one, else the oldest', async (t) => {
  const server = createServer((_request, answer) => void answer.write('first half'));
  const http = serverOver(t, server, { maxConnections: 2 });
  const port = await http.start();
  const busy = async (): Promise<Connection> => {
    const connection = await open(t, port);
    connection.socket.write(request);
    await once(connection.socket, 'data');
    return connection;
  };
  const first = await busy();
  const idle = await open(t, port);
  const second = await busy();
  t.equal(await idle.closed, '');
  await busy();
  t.match(await first.closed, /first half/, 'all are busy');
  t.notOk(second.socket.closed);
});

t.test('over TLS, unfinished handshakes count as connections', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server: pair } = certificates;
  const server = createTlsServer({ cert: pair.cert, key: pair.key }, (_request, answer) => {
    answer.end('hello');
  });
  const http = serverOver(t, server, { maxConnections: 2 });
  const port = await http.start();
  const silent = [await open(t, port), await open(t, port)];
  for (const _ of silent) {
    const client = await listenTo(t, connectTls({ port, host: 'localhost', ca: ca.cert }), 'secureConnect');
    client.socket.write(request);
    await once(client.socket, 'data');
  }
  t.equal(await silent[0]?.closed, '');
  t.notOk(silent[1]?.socket.closed, 'the first client was idle');
});

const settings = { host: 'HOST', port: 'PORT' };

t.test('an error of listening names the settings', async (t) => {
  const cause = new Error('listen EADDRINUSE: address already in use 127.0.0.1:80');
  await t.rejects(nameListenSettings(Promise.reject(cause), settings), {
    message: `cannot listen on the address set by HOST and PORT: ${cause.message}`,
    cause,
  });
});

t.test('the result of listening is passed on', async (t) => {
  t.equal(await nameListenSettings(Promise.resolve(8080), settings), 8080);
});

t.test('requests that do not arrive completely are bounded, 503 beyond it', async (t) => {
  const bodies: number[] = [];
  const server = createServer((message, answer) => {
    readRequestBody(message, 1_000_000, () => new Error('too large')).then(
      (body) => {
        bodies.push(body.length);
        answer.end('done');
      },
      () => undefined,
    );
  });
  const shed: string[] = [];
  const buffers = new ClientBuffers({
    maxBytes: 8 * 100_000,
    onShed: ({ protocol, address }) => shed.push(`${protocol} ${address}`),
  });
  const http = serverOver(t, server, { buffers });
  const port = await http.start();
  const post = (length: number) => `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`;

  const small = await open(t, port);
  small.socket.write(post(50_000) + 'x'.repeat(40_000));
  const large = await open(t, port);
  large.socket.write(post(500_000) + 'x'.repeat(120_000));
  t.match(await large.closed, /^HTTP\/1.1 503 Service Unavailable\r\nConnection: close[\s\S]*retry later\n$/);
  t.same(shed, ['http 127.0.0.1']);
  small.socket.write('x'.repeat(10_000));
  await awaitUntil(() => bodies.length === 1, { what: 'the smaller request is complete' });
  t.same(bodies, [50_000]);
  await awaitUntil(() => buffers.bytes === 0, { what: 'a complete request does not count' });

  const head = await open(t, port);
  head.socket.write(`GET / HTTP/1.1\r\nX: ${'x'.repeat(10_000)}`);
  await awaitUntil(() => buffers.bytes > 10_000, { what: 'an incomplete head counts' });
  head.socket.destroy();
  await awaitUntil(() => buffers.bytes === 0, { what: 'a closed connection does not count' });
  await http.stop(patient);
});
