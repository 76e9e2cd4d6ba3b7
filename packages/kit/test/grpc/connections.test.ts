import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { createLogger } from '@tollgate/kit/logger';
import { makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import type { ConnectionLimits } from '../../src/grpc/connections.ts';
import { unaryMethod } from '../../src/grpc/library.ts';
import { GrpcListener } from '../../src/grpc/listener.ts';

const path = '/test.Echo/Echo';
/** The start of every HTTP/2 connection: the magic text and an empty SETTINGS frame. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
/** Never aborts: a stop that needs it does not end, and the test with it. */
const patient = new AbortController().signal;
const nothing = (): void => undefined;

interface Options extends Partial<ConnectionLimits> {
  readonly credentials?: ServerCredentials;
  /** Answers calls later than at once. */
  readonly respond?: (answer: () => void) => void;
}

async function start(t: Test, { credentials, respond, ...limits }: Options = {}) {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const server = new Server();
  server.addService(
    { Echo: unaryMethod(path) },
    {
      Echo: (_call: unknown, callback: (error: null, reply: Uint8Array) => void) => {
        const answer = (): void => callback(null, new Uint8Array());
        if (respond === undefined) answer();
        else respond(answer);
      },
    },
  );
  const logger = createLogger({ level: 'warn', format: 'json', destination: { write } });
  const listener = new GrpcListener(server, logger, limits);
  const port = await listener.listen('127.0.0.1:0', credentials ?? ServerCredentials.createInsecure());
  t.teardown(() => listener.shutDown(AbortSignal.abort(), nothing));
  return { port, lines, stop: () => listener.shutDown(patient, nothing) };
}

/** A TCP connection that keeps its own side open when the server closes the other. */
async function openTcp(t: Test, port: number) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  socket.on('error', nothing);
  const ended = new Promise<void>((resolve) => socket.once('end', resolve).once('close', resolve));
  await once(socket, 'connect');
  return { socket, ended };
}

/** Resolves when the server has accepted it: its SETTINGS have arrived. */
async function openAccepted(t: Test, port: number, bytes?: Buffer) {
  const opened = await openTcp(t, port);
  const accepted = once(opened.socket, 'data');
  if (bytes !== undefined) opened.socket.write(bytes);
  await accepted;
  return opened;
}

function openSession(t: Test, url: string, options: { readonly ca?: string } = {}): ClientHttp2Session {
  const session = connectHttp2(url, options);
  t.teardown(() => session.destroy());
  return session.on('error', nothing);
}

/** Makes a call and answers the gRPC status; undefined when it was cut off. */
async function call(session: ClientHttp2Session): Promise<string | undefined> {
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
  let status: string | undefined;
  stream.on('error', nothing).on('trailers', (trailers) => {
    status = String(trailers['grpc-status']);
  });
  stream.resume().end(Buffer.alloc(5));
  await new Promise((resolve) => stream.once('close', resolve));
  return status;
}

t.test('a stop does not wait for a connection that sent nothing', async (t) => {
  const { port, stop } = await start(t);
  const { ended } = await openAccepted(t, port);
  await stop();
  await ended;
});

t.test('a stop does not wait for a client that keeps its side open and never reads', async (t) => {
  const { port, stop } = await start(t);
  const { socket } = await openTcp(t, port);
  socket.pause().write(preface);
  t.equal(await call(openSession(t, `http://127.0.0.1:${port}`)), '0', 'the first one was accepted before');
  await stop();
});

t.test('a stop does not wait for a client that has just closed', async (t) => {
  const { port, stop } = await start(t);
  const closing: Socket[] = [];
  for (let i = 0; i < 20; i += 1) closing.push((await openAccepted(t, port, preface)).socket);
  for (const [i, socket] of closing.entries()) i % 2 === 0 ? socket.end() : socket.destroy();
  const sessions = Array.from({ length: 20 }, () => openSession(t, `http://127.0.0.1:${port}`));
  await Promise.all(sessions.map(call));
  for (const [i, session] of sessions.entries()) i % 2 === 0 ? session.close() : session.destroy();
  await stop();
});

t.test('a stop closes idle connections and completes calls in flight', async (t) => {
  const answers: (() => void)[] = [];
  const { port, stop } = await start(t, { respond: (answer) => answers.push(answer) });
  const silent = await openAccepted(t, port);
  const idle = await openAccepted(t, port, preface);
  const session = openSession(t, `http://127.0.0.1:${port}`);
  const called = call(session);
  while (answers.length === 0) await new Promise(setImmediate);
  const stopped = stop();
  await Promise.all([silent.ended, idle.ended]);
  answers[0]?.();
  t.equal(await called, '0');
  await stopped;
});

t.test('over TLS a stop waits neither for unfinished handshakes nor for idle connections', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { server: pair, ca } = certificates;
  const credentials = ServerCredentials.createSsl(null, [
    { cert_chain: Buffer.from(pair.cert), private_key: Buffer.from(pair.key) },
  ]);
  const { port, stop } = await start(t, { credentials });
  const { ended } = await openTcp(t, port);
  const session = openSession(t, `https://localhost:${port}`, { ca: ca.cert });
  t.equal(await call(session), '0');
  await stop();
  await ended;
});

t.test('a connection without a preface times out, others do not', async (t) => {
  const { port } = await start(t, { prefaceTimeoutMs: 50 });
  const used = openSession(t, `http://127.0.0.1:${port}`);
  t.equal(await call(used), '0');
  const withPreface = await openAccepted(t, port, preface);
  const silent = await openAccepted(t, port);
  const slow = await openAccepted(t, port, preface.subarray(0, 30));
  await Promise.all([silent.ended, slow.ended]);
  t.equal(withPreface.socket.readableEnded, false);
  t.equal(await call(used), '0');
});

t.test('an unfinished TLS handshake times out', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { server: pair, ca } = certificates;
  const credentials = ServerCredentials.createSsl(null, [
    { cert_chain: Buffer.from(pair.cert), private_key: Buffer.from(pair.key) },
  ]);
  const { port } = await start(t, { credentials, prefaceTimeoutMs: 500 });
  const session = openSession(t, `https://localhost:${port}`, { ca: ca.cert });
  t.equal(await call(session), '0');
  await (await openTcp(t, port)).ended;
  t.equal(await call(session), '0');
});

t.test(
  'at the limit connections without calls give way first, then the one that was idle longest',
  async (t) => {
    const { port, lines } = await start(t, { maxConnections: 3 });
    const url = `http://127.0.0.1:${port}`;
    const [first, second] = [openSession(t, url), openSession(t, url)];
    t.same([await call(first), await call(second), await call(first)], ['0', '0', '0']);
    const unused = await openAccepted(t, port, preface);
    const third = openSession(t, url);
    t.equal(await call(third), '0');
    await unused.ended;

    const closed = once(second, 'close');
    t.equal(await call(openSession(t, url)), '0');
    await closed;
    t.same([await call(first), await call(third)], ['0', '0']);
    t.equal(lines.length, 1, 'logged once for both');
    t.match(JSON.parse(lines[0] ?? ''), { maxConnections: 3, closed: 1 });
  },
);

t.test('with all connections busy, the one with the oldest call is closed', async (t) => {
  const answers: (() => void)[] = [];
  const { port } = await start(t, { maxConnections: 2, respond: (answer) => answers.push(answer) });
  const url = `http://127.0.0.1:${port}`;
  const calls: Promise<string | undefined>[] = [];
  for (let i = 1; i <= 3; i += 1) {
    calls.push(call(openSession(t, url)));
    while (answers.length < i) await new Promise(setImmediate);
  }
  t.equal(await calls[0], undefined);
  for (const answer of answers) answer();
  t.same(await Promise.all(calls.slice(1)), ['0', '0']);
});

t.test('at the limit of one address, its idle connections are closed, those in use are not', async (t) => {
  const answers: (() => void)[] = [];
  const respond = (answer: () => void): void => void answers.push(answer);
  const { port } = await start(t, { maxConnectionsPerAddress: 2, respond });
  const busy = openSession(t, `http://127.0.0.1:${port}`);
  const pending = call(busy);
  while (answers.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const idle = await openAccepted(t, port, preface);
  const next = openSession(t, `http://127.0.0.1:${port}`);
  const another = call(next);
  await idle.ended;
  while (answers.length === 1) await new Promise((resolve) => setImmediate(resolve));
  const refused = await openTcp(t, port);
  refused.socket.write(preface);
  await refused.ended;
  for (const answer of answers) answer();
  t.same(await Promise.all([pending, another]), ['0', '0']);
});
