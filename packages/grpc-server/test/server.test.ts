import { randomBytes } from 'node:crypto';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import type { Call, UnaryHandler } from '../src/call.ts';
import { ErrorCode, Flag, FrameType, frame, numberFrame, Setting, settingsFrame } from '../src/frames.ts';
import { GrpcServer, type ListenAddress, type ServerOptions } from '../src/server.ts';
import { Code, GrpcStatus } from '../src/status.ts';
import { headersFrame, RawClient } from './support/raw-client.ts';

const echo = '/test.Echo/Call';
const anyPort: ListenAddress = { host: '127.0.0.1', port: 0 };

async function start(t: Test, unary: Record<string, UnaryHandler>, options: Partial<ServerOptions> = {}) {
  const server = new GrpcServer({ methods: { unary }, ...options });
  const port = await server.listen(anyPort);
  t.teardown(() => server.drain(AbortSignal.abort()));
  return { server, port, address: `127.0.0.1:${port}` };
}

function client(t: Test, address: string, channelCredentials = credentials.createInsecure()) {
  const made = new Client(address, channelCredentials);
  t.teardown(() => made.close());
  return made;
}

function call(
  made: Client,
  path: string,
  message: Uint8Array,
  options: { deadline?: number; metadata?: Metadata } = {},
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    made.makeUnaryRequest(
      path,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => bytes,
      message,
      options.metadata ?? new Metadata(),
      { deadline: options.deadline ?? Date.now() + 20_000 },
      (error: ServiceError | null, reply?: Buffer) =>
        reply === undefined ? reject(error ?? new Error('no reply')) : resolve(reply),
    );
  });
}

t.test('grpc-js gets replies of every size, many at a time', async (t) => {
  const { address } = await start(t, { [echo]: (message) => message });
  const made = client(t, address);
  const sizes = [0, 1, 100, 16_379, 16_380, 65_536, 400_000, 1024 * 1024];
  for (const size of sizes) {
    const message = randomBytes(size);
    t.ok((await call(made, echo, message)).equals(message), `${size} bytes`);
  }
  const messages = Array.from({ length: 300 }, () => randomBytes(1000));
  const replies = await Promise.all(messages.map((message) => call(made, echo, message)));
  t.ok(replies.every((reply, index) => reply.equals(messages[index] ?? Buffer.alloc(0))));
});

t.test('a handler knows path, headers, deadline and peer of its call', async (t) => {
  const calls: Call[] = [];
  const { address } = await start(t, {
    [echo]: async (message, call) => {
      calls.push(call);
      return message;
    },
  });
  const metadata = new Metadata();
  metadata.set('x-request-id', 'abc');
  await call(client(t, address), echo, Buffer.from('x'), { metadata, deadline: Date.now() + 60_000 });
  const [got] = calls;
  t.equal(got?.path, echo);
  t.equal(got?.header('x-request-id'), 'abc');
  t.equal(got?.header('x-missing'), undefined);
  t.equal(got?.peer.address, '127.0.0.1');
  const left = got?.timeLeftMs() ?? 0;
  t.ok(left > 0 && left <= 60_000);
});

t.test('errors reach the client as status and percent-encoded message', async (t) => {
  const { address } = await start(
    t,
    {
      '/a.B/Status': () => new GrpcStatus(Code.NOT_FOUND, 'kein Schlüssel: 100 %'),
      '/a.B/Throws': () => {
        throw new Error('secret');
      },
      '/a.B/Rejects': () => Promise.reject(new Error('secret')),
    },
    { toStatus: (error, path) => new GrpcStatus(Code.UNAVAILABLE, `${path}: ${error instanceof Error}`) },
  );
  const made = client(t, address);
  const message = Buffer.alloc(0);
  await t.rejects(call(made, '/a.B/Status', message), {
    code: status.NOT_FOUND,
    details: 'kein Schlüssel: 100 %',
  });
  await t.rejects(call(made, '/a.B/Throws', message), {
    code: status.UNAVAILABLE,
    details: '/a.B/Throws: true',
  });
  await t.rejects(call(made, '/a.B/Rejects', message), { code: status.UNAVAILABLE });
  await t.rejects(call(made, '/a.B/Unknown', message), { code: status.UNIMPLEMENTED });
  await t.rejects(call(made, '/constructor', message), { code: status.UNIMPLEMENTED });
});

t.test('without toStatus, errors are not disclosed to the client', async (t) => {
  const { address } = await start(t, { [echo]: () => Promise.reject(new Error('secret')) });
  await t.rejects(call(client(t, address), echo, Buffer.alloc(0)), {
    code: status.UNKNOWN,
    details: 'internal error',
  });
});

t.test('a message above the limit is refused and the connection goes on', async (t) => {
  const { address } = await start(t, { [echo]: (message) => message }, { limits: { maxMessageBytes: 1000 } });
  const made = client(t, address);
  for (const size of [1001, 50_000, 3_000_000]) {
    await t.rejects(call(made, echo, Buffer.alloc(size)), { code: status.RESOURCE_EXHAUSTED }, `${size}`);
  }
  t.equal((await call(made, echo, Buffer.alloc(1000))).length, 1000);
  const usual = await start(t, { [echo]: (message) => message });
  const large = Buffer.alloc(5 * 1024 * 1024);
  await t.rejects(call(client(t, usual.address), echo, large), { code: status.RESOURCE_EXHAUSTED });
});

t.test('a call whose deadline passes ends, and its handler is aborted', async (t) => {
  const aborted = Promise.withResolvers<void>();
  const { port } = await start(t, {
    [echo]: (_message, call) => {
      call.signal.addEventListener('abort', () => aborted.resolve());
      return new Promise(() => undefined);
    },
  });
  // Not by grpc-js, which would end the call by itself.
  const raw = new RawClient(port);
  t.teardown(() => raw.socket.destroy());
  raw.open();
  raw.send(headersFrame(1, { extra: [['grpc-timeout', '30m']] }));
  raw.send(frame(FrameType.DATA, Flag.END_STREAM, 1, Buffer.alloc(5)));
  const reply = await raw.receive(({ type, streamId }) => type === FrameType.HEADERS && streamId === 1);
  t.match(reply?.payload.toString('latin1'), /deadline exceeded/);
  await aborted.promise;
});

t.test('a call that the client cancels ends, and its handler is aborted', async (t) => {
  const started = Promise.withResolvers<Call>();
  const { server, address } = await start(t, {
    [echo]: (_message, call) => {
      started.resolve(call);
      return new Promise(() => undefined);
    },
  });
  const made = client(t, address);
  const request = made.makeUnaryRequest(
    echo,
    (b: Buffer) => b,
    (b) => b,
    Buffer.alloc(0),
    () => undefined,
  );
  const { signal } = await started.promise;
  const ended = new Promise((resolve) => signal.addEventListener('abort', resolve));
  request.cancel();
  await ended;
  t.equal(server.callCount, 0);
});

t.test('requests may be compressed with gzip, within the limit on messages', async (t) => {
  const { port } = await start(t, { [echo]: (message) => message });
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.teardown(() => session.close());
  const send = async (encoding: string, body: Buffer, flag = 1) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': echo,
      'content-type': 'application/grpc',
      'grpc-encoding': encoding,
      te: 'trailers',
    });
    const prefix = Buffer.from([flag, 0, 0, 0, 0]);
    prefix.writeUInt32BE(body.length, 1);
    stream.end(Buffer.concat([prefix, body]));
    let reply = Buffer.alloc(0);
    let grpcStatus: unknown;
    stream.on('data', (chunk: Buffer) => {
      reply = Buffer.concat([reply, chunk]);
    });
    stream.on('response', (headers) => {
      grpcStatus = headers['grpc-status'];
    });
    stream.on('trailers', (headers) => {
      grpcStatus = headers['grpc-status'];
    });
    await new Promise((resolve) => stream.on('close', resolve));
    return { reply: reply.subarray(5).toString(), grpcStatus };
  };
  t.same(await send('gzip', gzipSync('hello')), { reply: 'hello', grpcStatus: '0' });
  t.match(await send('identity', Buffer.from('plain'), 0), { reply: 'plain' });
  t.match(await send('gzip', gzipSync(Buffer.alloc(50_000_000))), { grpcStatus: '8' }, 'a bomb');
  t.match(await send('gzip', Buffer.from('no gzip')), { grpcStatus: '13' });
  t.match(await send('deflate', Buffer.from('x')), { grpcStatus: '12' });
  t.match(await send('identity', Buffer.from('x')), { grpcStatus: '13' }, 'flag without encoding');
});

t.test('a request that is not gRPC gets an HTTP status', async (t) => {
  const { port } = await start(t, { [echo]: (message) => message });
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.teardown(() => session.close());
  const statusOf = async (headers: Record<string, string>) => {
    const stream = session.request(headers);
    stream.end();
    const answered = await new Promise<Record<string, unknown>>((resolve) => stream.on('response', resolve));
    stream.resume();
    return answered[':status'];
  };
  t.equal(await statusOf({ ':path': echo }), 405);
  t.equal(await statusOf({ ':method': 'POST', ':path': echo, 'content-type': 'text/plain' }), 415);
  t.equal(await statusOf({ ':method': 'POST', ':path': echo, 'x-large': 'x'.repeat(20_000) }), 431);
});

t.test('replies wait for the windows of the client and continue when they grow', async (t) => {
  const { port } = await start(t, { [echo]: () => Buffer.alloc(100) });
  const raw = new RawClient(port);
  t.teardown(() => raw.socket.destroy());
  raw.open([[Setting.INITIAL_WINDOW_SIZE, 0]]);
  raw.call(1, echo);
  await raw.receive(({ type }) => type === FrameType.HEADERS);
  const data = () => raw.frames.filter(({ type }) => type === FrameType.DATA);
  t.equal(data().length, 0);
  raw.send(numberFrame(FrameType.WINDOW_UPDATE, 1, 40));
  await raw.receive(({ type, payload }) => type === FrameType.DATA && payload.length === 40);
  raw.send(settingsFrame([[Setting.INITIAL_WINDOW_SIZE, 1000]]));
  await raw.receive(({ type, flags }) => type === FrameType.HEADERS && (flags & Flag.END_STREAM) !== 0);
  t.strictSame(
    data().map(({ payload }) => payload.length),
    [40, 65],
  );
});

t.test('of several window sizes in one SETTINGS the last one counts', async (t) => {
  const { port } = await start(t, { [echo]: () => Buffer.alloc(100) });
  const raw = new RawClient(port);
  t.teardown(() => raw.socket.destroy());
  const sizes = Array.from(
    { length: 2_000 },
    (_, index) => [Setting.INITIAL_WINDOW_SIZE, index % 7] as const,
  );
  raw.open([...sizes, [Setting.INITIAL_WINDOW_SIZE, 30]]);
  raw.call(1, echo);
  const reply = await raw.receive(({ type }) => type === FrameType.DATA);
  t.equal(reply?.payload.length, 30);
});

t.test('an early reply asks the client to stop sending', async (t) => {
  const { port } = await start(t, { [echo]: (message) => message }, { limits: { maxMessageBytes: 100 } });
  const raw = new RawClient(port);
  t.teardown(() => raw.socket.destroy());
  raw.open();
  raw.send(headersFrame(1), frame(FrameType.DATA, 0, 1, Buffer.alloc(16_384)));
  raw.send(frame(FrameType.DATA, 0, 1, Buffer.alloc(16_384)));
  const reset = await raw.receive(({ type }) => type === FrameType.RST_STREAM);
  t.equal(reset?.payload.readUInt32BE(), ErrorCode.NO_ERROR);
  // Frames that were under way are no mistake of the client.
  raw.send(frame(FrameType.DATA, Flag.END_STREAM, 1, Buffer.alloc(10)));
  raw.call(3, echo);
  t.ok(await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 3));
});

t.test('a Unix socket is served like a port', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const path = `${folder.path}/grpc.sock`;
  const server = new GrpcServer({ methods: { unary: { [echo]: (message) => message } } });
  t.equal(await server.listen({ path }), 0);
  t.teardown(() => server.drain(AbortSignal.abort()));
  t.equal((await call(client(t, `unix:${path}`), echo, Buffer.from('hi'))).toString(), 'hi');
});

t.test('a port in use rejects', async (t) => {
  const { port } = await start(t, {});
  const second = new GrpcServer({ methods: { unary: {} } });
  await t.rejects(second.listen({ host: '127.0.0.1', port }), { code: 'EADDRINUSE' });
});

t.test('mutual TLS: the certificate decides which clients are accepted', async (t) => {
  const files = makeCertificates();
  t.teardown(files.remove);
  const ca = files.ca.cert;
  const failures: string[] = [];
  const { server, port, address } = await start(
    t,
    { [echo]: (message) => message },
    {
      tls: { cert: files.server.cert, key: files.server.key, ca, requestCert: true },
      refusal: ({ certificate }) =>
        certificate?.subjectaltname?.includes('DNS:client.test') ? undefined : 'not for client.test',
    },
  );
  server.listener.on('tlsClientError', (error: Error) => failures.push(error.message));
  const withCertificate = ({ cert, key }: { cert: string; key: string }) =>
    client(t, address, credentials.createSsl(Buffer.from(ca), Buffer.from(key), Buffer.from(cert)));
  t.equal((await call(withCertificate(files.client), echo, Buffer.from('hi'))).toString(), 'hi');
  await t.rejects(
    call(
      withCertificate(files.issue({ name: 'other', subjectAltNames: ['DNS:other.test'] })),
      echo,
      Buffer.from('hi'),
    ),
    {
      code: status.UNAUTHENTICATED,
      details: 'not for client.test',
    },
  );
  const anonymous = client(t, address, credentials.createSsl(Buffer.from(ca)));
  await t.rejects(call(anonymous, echo, Buffer.from('hi'), { deadline: Date.now() + 3000 }));
  t.ok(failures.length > 0, 'the failed handshake is reported');
  const socket = connectTls({ port, host: '127.0.0.1', ca, ALPNProtocols: ['http/1.1'] });
  const refused = await new Promise<Error>((resolve) => socket.once('error', resolve));
  t.match(refused.message, /no application protocol/i, 'ALPN without h2');
});

t.test('over TLS, a drain completes calls in flight, and each connection counts once', async (t) => {
  const files = makeCertificates();
  t.teardown(files.remove);
  const waiting = Promise.withResolvers<Uint8Array>();
  const arrived = Promise.withResolvers<void>();
  const { server, port, address } = await start(
    t,
    {
      [echo]: (message) => message,
      '/test.Echo/Wait': () => {
        arrived.resolve();
        return waiting.promise;
      },
    },
    { tls: { cert: files.server.cert, key: files.server.key }, limits: { maxConnections: 3 } },
  );
  const secure = () => client(t, address, credentials.createSsl(Buffer.from(files.ca.cert), null, null, {}));
  const inFlight = call(secure(), '/test.Echo/Wait', Buffer.from('hi'));
  await arrived.promise;
  const session = () => connectTls({ port, host: '127.0.0.1', ca: files.ca.cert, ALPNProtocols: ['h2'] });
  const others = [session(), session()];
  for (const other of others) other.on('error', () => undefined);
  await Promise.all(others.map((other) => new Promise((resolve) => other.once('data', resolve))));
  t.equal(server.connectionCount, 3, 'as many as there may be');
  const drained = server.drain(AbortSignal.timeout(20_000));
  waiting.resolve(Buffer.from('answer'));
  t.equal((await inFlight).toString(), 'answer');
  for (const other of others) other.destroy();
  await drained;
});

t.test('unfinished TLS handshakes at the limit do not evict connections', async (t) => {
  const files = makeCertificates();
  t.teardown(files.remove);
  const { server, port, address } = await start(
    t,
    { [echo]: (message) => message },
    { tls: { cert: files.server.cert, key: files.server.key }, limits: { maxConnections: 3 } },
  );
  const made = client(t, address, credentials.createSsl(Buffer.from(files.ca.cert)));
  await call(made, echo, Buffer.from('hi'));
  const closed: Promise<unknown>[] = [];
  for (let i = 0; i < 8; i += 1) {
    const socket = connectTcp(port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.on('error', () => undefined);
    closed.push(new Promise((resolve) => socket.once('close', resolve)));
    await new Promise((resolve) => server.listener.once('connection', resolve));
  }
  await Promise.all(closed.slice(0, 6));
  t.equal(server.connectionCount, 1);
  t.equal((await call(made, echo, Buffer.from('still'))).toString(), 'still');
});
