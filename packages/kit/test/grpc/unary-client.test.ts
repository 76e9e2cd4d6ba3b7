import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import { Flag, FrameType, frame, numberFrame, settingsFrame } from '@tollgate/grpc-server/frames';
import { GrpcServer, type ServerOptions } from '@tollgate/grpc-server/server';
import { Code, GrpcStatus } from '@tollgate/grpc-server/status';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { unaryMethod } from '../../src/grpc/library.ts';
import { UnaryClient } from '../../src/grpc/unary-client.ts';
import { type WatchedTls, watchTlsFiles } from '../../src/tls.ts';

const path = '/test.Echo/Call';
const logger = createLogger({ level: 'fatal', format: 'json' });
const patient = { timeoutMs: 20_000 };
const hello = Buffer.from('hello');

async function startServer(
  t: Test,
  handler: UnaryHandler = (message) => message,
  { port = 0, ...options }: Partial<ServerOptions> & { port?: number } = {},
) {
  const server = new GrpcServer({ methods: { unary: { [path]: handler } }, ...options });
  t.teardown(() => server.drain(AbortSignal.abort()));
  return { server, port: await server.listen({ host: '127.0.0.1', port, reusePort: true }) };
}

function connect(t: Test, port: number, tls?: WatchedTls): UnaryClient {
  const client = new UnaryClient({ address: `localhost:${port}`, tls, logger });
  t.teardown(() => client.close());
  client.start();
  return client;
}

/** Calls miss their deadline when `expire` is called. */
function connectByHand(t: Test, port: number): { readonly client: UnaryClient; readonly expire: () => void } {
  const deadlines = new Set<() => void>();
  const client = new UnaryClient({
    ...{ address: `localhost:${port}`, logger },
    startDeadline: (_timeoutMs, late) => {
      deadlines.add(late);
      return () => deadlines.delete(late);
    },
  });
  t.teardown(() => client.close());
  client.start();
  return {
    client,
    expire() {
      for (const late of deadlines) late();
    },
  };
}

t.test('calls get the reply, or the status and message of the server', async (t) => {
  const { port } = await startServer(t, (message, call) =>
    message.length > 0
      ? Buffer.concat([message, Buffer.from(call.header('x-trace') ?? '')])
      : new GrpcStatus(Code.INVALID_ARGUMENT, 'no message: 100 %'),
  );
  const client = connect(t, port);
  const reply = await client.call(path, hello, { ...patient, headers: { 'x-trace': '1' } });
  t.equal(Buffer.from(reply).toString(), 'hello1');
  await t.rejects(client.call(path, Buffer.alloc(0), patient), { status: 3, message: 'no message: 100 %' });
  await t.rejects(client.call('/test.Echo/Other', hello, patient), { status: 12, message: /Other/ });
  const large = Buffer.alloc(50_000, 'x');
  const many = await Promise.all(Array.from({ length: 40 }, () => client.call(path, large, patient)));
  t.ok(
    many.every((one) => one.length === large.length),
    'together they are larger than the windows of flow control',
  );
  await t.rejects(client.call(path, Buffer.alloc(70_000), patient), { status: 8, message: /too large/ });
});

t.test('calls fail at once while the server is down, and work once it is up', async (t) => {
  const port = await freePort();
  const client = connect(t, port);
  await awaitUntil(
    () => client.call(path, hello, patient).then(Boolean, (error) => /cannot be/.test(error)),
    {
      what: 'the refused connection to be noticed',
    },
  );
  await t.rejects(client.call(path, hello, patient), { status: 14, message: /cannot be reached/ });
  await startServer(t, undefined, { port });
  await awaitUntil(() => client.call(path, hello, patient).then(Boolean, () => false), {
    what: 'the connection',
  });
});

t.test('calls that miss their deadline do not make others fail', async (t) => {
  const peers: unknown[] = [];
  const { port } = await startServer(t, (message, { peer }) => {
    peers.push(peer);
    return message.length > 0 ? message : new Promise(() => {});
  });
  const { client, expire } = connectByHand(t, port);
  const twice = () => Promise.all([client.call(path, hello, patient), client.call(path, hello, patient)]);
  const hang = () => client.call(path, Buffer.alloc(0), { timeoutMs: 20 });
  await twice();
  for (const others of [twice, () => Promise.resolve()]) {
    const hanging = Promise.allSettled([hang(), hang()]);
    await others();
    expire();
    // At once: PINGs have not been answered.
    await twice();
    t.match(await hanging, [{ reason: { status: 4, message: /within 20 ms/ } }, { reason: { status: 4 } }]);
    if (others === twice) t.equal(new Set(peers.slice(-2)).size, 2, 'connections with replies stay in use');
  }
});

t.test('a call without time is not sent', async (t) => {
  let calls = 0;
  const { port } = await startServer(t, (message) => {
    calls += 1;
    return message;
  });
  const client = connect(t, port);
  await t.rejects(client.call(path, hello, { timeoutMs: 0.8 }), { status: 4, message: /no time is left/ });
  await Promise.all([client.call(path, hello, patient), client.call(path, hello, patient)]);
  t.equal(calls, 2);
});

t.test('a server that hangs costs one timeout per connection', async (t) => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const client = connect(t, (server.address() as AddressInfo).port); // it listens on TCP
  for (let call = 0; call < 2; call += 1)
    await t.rejects(client.call(path, hello, { timeoutMs: 20 }), { status: 4, message: /within/ });
  await t.rejects(client.call(path, hello, patient), { status: 14, message: /cannot be/ }, 'at once');
});

t.test('a server that drains its connections loses no call', async (t) => {
  const first = await startServer(t);
  const client = connect(t, first.port);
  await Promise.all([client.call(path, hello, patient), client.call(path, hello, patient)]);
  await startServer(t, () => Buffer.from('second'), { port: first.port });
  let drained = false;
  const draining = first.server.drain(new AbortController().signal).then(() => {
    drained = true;
  });
  const replies: string[] = [];
  while (!drained || replies.at(-1) !== 'second')
    replies.push(Buffer.from(await client.call(path, hello, patient)).toString());
  await draining;
  t.match(replies.at(-1), 'second');
});

t.test('calls that a draining server does not answer cost the next connections nothing', async (t) => {
  const first = await startServer(t, (message) => (message.length > 0 ? message : new Promise(() => {})));
  const { client, expire } = connectByHand(t, first.port);
  await Promise.all([client.call(path, hello, patient), client.call(path, hello, patient)]);
  const hang = () => client.call(path, Buffer.alloc(0), patient);
  const hanging = Promise.allSettled([hang(), hang()]);
  await startServer(t, () => Buffer.from('second'), { port: first.port });
  void first.server.drain(new AbortController().signal);
  let answers = 0;
  while (answers < 2)
    answers = Buffer.from(await client.call(path, hello, patient)).toString() === 'second' ? answers + 1 : 0;
  expire();
  const replies = await Promise.all([client.call(path, hello, patient), client.call(path, hello, patient)]);
  t.same(replies.map(String), ['second', 'second']);
  t.match(await hanging, [{ reason: { status: 4 } }, { reason: { status: 4 } }]);
});

t.test('calls beyond the limit of calls in flight fail at once', async (t) => {
  const { port } = await startServer(t, () => new Promise(() => {}), {
    limits: { maxConcurrentStreams: 2_000 },
  });
  const client = connect(t, port);
  const calls = Array.from({ length: 1_001 }, () => client.call(path, hello, patient).catch(String));
  t.match(await calls.at(-1), /1000 calls are in flight/);
  client.close();
  t.match((await Promise.all(calls)).slice(0, 1), [/was lost|cannot be reached/]);
});

t.test('calls work with a server of grpc-js, one stream at a time', async (t) => {
  const server = new Server({ 'grpc.max_concurrent_streams': 1 });
  t.teardown(() => server.forceShutdown());
  server.addService(
    { Call: unaryMethod(path) },
    {
      Call: (
        { request }: { request: Uint8Array },
        done: (error: object | null, reply?: Uint8Array) => void,
      ) => (request.length > 0 ? done(null, request) : done({ code: 9, details: 'é 100 %' })),
    },
  );
  const bind = promisify(server.bindAsync.bind(server));
  const client = connect(t, await bind('127.0.0.1:0', ServerCredentials.createInsecure()));
  for (let round = 0; round < 3; round += 1) {
    const replies = await Promise.all(Array.from({ length: 50 }, () => client.call(path, hello, patient)));
    t.ok(replies.every((reply) => hello.equals(reply)));
  }
  await t.rejects(client.call(path, Buffer.alloc(0), patient), { status: 9, message: 'é 100 %' });
});

t.test('a server that breaks the protocol fails its calls, and the next connection is tried', async (t) => {
  const settings = settingsFrame([]);
  const broken = [
    Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
    Buffer.concat([
      settings,
      frame(FrameType.HEADERS, Flag.END_HEADERS, 1, Buffer.of(0xff, 0xff, 0xff, 0xff)),
    ]),
    Buffer.concat([settings, frame(FrameType.PING, 0, 0, Buffer.alloc(3))]),
    Buffer.concat([settings, frame(FrameType.CONTINUATION, 0, 1, Buffer.alloc(3))]),
    Buffer.concat([settings, frame(FrameType.HEADERS, 0, 1, Buffer.alloc(0)), settings]),
    Buffer.concat([settings, numberFrame(FrameType.WINDOW_UPDATE, 0, 0x7fff_ffff)]),
    Buffer.concat([settings, frame(FrameType.PUSH_PROMISE, 0, 1, Buffer.alloc(4))]),
    Buffer.concat([settings, frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(1))]),
  ];
  for (const bytes of broken) {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.write(bytes));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect(t, (server.address() as AddressInfo).port); // it listens on TCP
    await t.rejects(
      client.call(path, hello, patient),
      { status: 14, message: /was lost|cannot be reached|refused/ },
      bytes.toString('hex'),
    );
    client.close();
    server.close();
  }
});

t.test('mutual TLS, with certificates that are renewed', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server: own, client: pair } = certificates;
  const serials: (string | undefined)[] = [];
  const { port } = await startServer(
    t,
    (message, { peer }) => {
      serials.push(peer.certificate?.subject.CN?.toString());
      return message;
    },
    { tls: { cert: own.cert, key: own.key, ca: ca.cert, requestCert: true, rejectUnauthorized: true } },
  );
  const files = { certFile: pair.certFile, keyFile: pair.keyFile, caFile: ca.certFile };
  const tls = await watchTlsFiles(files, { logger, debounceMs: 1, pollMs: 20 });
  t.teardown(() => tls.close());
  const client = connect(t, port, tls);
  await client.call(path, hello, patient);
  certificates.issue({ name: 'client', commonName: 'renewed', subjectAltNames: ['DNS:client.test'] });
  await awaitUntil(
    async () => {
      await client.call(path, hello, patient);
      return serials.at(-1) === 'renewed';
    },
    { what: 'the renewed certificate' },
  );
  const untrusted = new UnaryClient({ address: `localhost:${port}`, tls: undefined, logger });
  t.teardown(() => untrusted.close());
  untrusted.start();
  await t.rejects(untrusted.call(path, hello, patient), {
    status: 14,
    message: /was lost|cannot be reached|refused/,
  });
});
