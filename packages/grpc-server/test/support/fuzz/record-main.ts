// Records what real clients send, for `make fuzz`. Run it with node; it has no arguments.
// Needs h2load, curl, ghz and Envoy (hack/setup.sh bench, hack/setup.sh go-tools).
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { startEnvoy } from '@tollgate/testkit/envoy';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { findBinary } from '@tollgate/testkit/processes';
import { healthMethods, ServingStatus } from '../../../src/health.ts';
import { GrpcServer } from '../../../src/server.ts';
import { proxyBootstrap } from '../envoy-proxy.ts';
import { fuzzMethods } from './methods.ts';
import { recordingsFolder, splitFrames } from './recordings.ts';

const health = healthMethods({ status: () => ServingStatus.SERVING, onChange: () => () => undefined });
const shouldRateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const run = promisify(execFile);
const pass = (bytes: Buffer) => bytes;

/** Runs clients against a server behind a proxy that keeps the bytes of the longest connection. */
async function record(name: string, useClient: (port: number) => Promise<unknown>): Promise<void> {
  const server = new GrpcServer({
    methods: { unary: { ...fuzzMethods, ...health.unary }, streaming: health.streaming },
  });
  const serverPort = await server.listen({ host: '127.0.0.1', port: 0 });
  const connections: Buffer[][] = [];
  const proxy = createServer((socket) => {
    const chunks: Buffer[] = [];
    connections.push(chunks);
    const upstream = connect(serverPort, '127.0.0.1');
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.pipe(upstream).pipe(socket);
    for (const end of [socket, upstream]) end.on('error', () => undefined);
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
  await useClient((proxy.address() as AddressInfo).port);
  proxy.close();
  await server.drain(AbortSignal.abort());
  const [longest = Buffer.alloc(0)] = connections
    .map((chunks) => Buffer.concat(chunks))
    .sort((a, b) => b.length - a.length);
  const frames = splitFrames(longest);
  writeFileSync(join(recordingsFolder, `${name}.bin`), longest);
  process.stdout.write(`${name}: ${frames.length} frames, ${longest.length} bytes\n`);
}

function callWithGrpcJs(
  client: Client,
  path: string,
  { size = 100, deadlineMs = 2_000 } = {},
): Promise<void> {
  const metadata = new Metadata();
  metadata.set('x-request-id', `id-${size}`);
  return new Promise((done) => {
    const options = { deadline: Date.now() + deadlineMs };
    client.makeUnaryRequest(path, pass, pass, Buffer.alloc(size, 'm'), metadata, options, () => done());
  });
}

async function useGrpcJs(port: number, compressed = false): Promise<void> {
  const algorithm = { 'grpc.default_compression_algorithm': compressed ? 2 : 0 };
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), algorithm);
  for (const path of Object.keys(fuzzMethods)) await callWithGrpcJs(client, path, { deadlineMs: 200 });
  await callWithGrpcJs(client, '/test.Echo/Unknown');
  if (!compressed) await callWithGrpcJs(client, '/test.Echo/Call', { size: 17_000 });
  const sameTime = Array.from({ length: 5 }, () => callWithGrpcJs(client, '/test.Echo/Call'));
  await Promise.all([...sameTime, callWithGrpcJs(client, '/grpc.health.v1.Health/Check', { size: 0 })]);
  const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', pass, pass, Buffer.alloc(0));
  watch.on('error', () => undefined);
  await new Promise((done) => watch.once('data', done));
  watch.cancel();
  await callWithGrpcJs(client, '/test.Echo/Call', { size: 0 });
  client.close();
}

async function useNodeHttp2(port: number): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 1_000 } });
  const gzipped = gzipSync(Buffer.alloc(200, 'z'));
  const bodies = [Buffer.from([0, 0, 0, 0, 2, 8, 1]), Buffer.from([1, 0, 0, 0, gzipped.length, ...gzipped])];
  const requests = [
    { ':method': 'GET', ':path': '/' },
    { ':method': 'POST', ':path': '/', 'content-type': 'text/plain' },
    { ':method': 'POST', ':path': '/test.Echo/Call', 'content-type': 'application/grpc', te: 'trailers' },
    {
      ...{ ':method': 'POST', ':path': '/test.Echo/Large', 'content-type': 'application/grpc+proto' },
      ...{ te: 'trailers', 'grpc-encoding': 'gzip', 'grpc-timeout': '1S' },
    },
  ];
  for (const headers of requests) {
    for (const body of bodies) {
      const stream = session.request(headers, {
        endStream: headers[':method'] === 'GET',
        waitForTrailers: true,
      });
      stream.on('error', () => undefined);
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-trailer': 'last' }));
      stream.resume();
      if (headers[':method'] !== 'GET') stream.end(body);
      await new Promise((done) => stream.once('close', done));
    }
  }
  session.settings({ initialWindowSize: 70_000, headerTableSize: 0 });
  await new Promise((done) => session.ping(() => done(undefined)));
  const cancelled = session.request(requests[2]);
  cancelled.on('error', () => undefined);
  cancelled.close(8);
  await new Promise((done) => cancelled.once('close', done));
  session.goaway(0);
  await new Promise<void>((done) => session.close(done));
}

async function useH2load(port: number): Promise<void> {
  const folder = temporaryFolder();
  const body = join(folder.path, 'body');
  writeFileSync(body, Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]));
  const headers = ['content-type: application/grpc', 'te: trailers'].map((header) => `--header=${header}`);
  const url = `http://127.0.0.1:${port}${shouldRateLimit}`;
  await run(findBinary('h2load'), ['-n20', '-c1', '-m4', `--data=${body}`, ...headers, url]);
  folder.remove();
}

async function useGhz(port: number, args: readonly string[] = []): Promise<void> {
  const definitions = resolve(import.meta.dirname, '../../../../../proto/definitions');
  const proto = join(definitions, 'grpc/health/v1/health.proto');
  const call = ['--insecure', '--proto', proto, '--call', 'grpc.health.v1.Health/Check', '-d', '{}'];
  await run(findBinary('ghz'), [...call, '-n', '20', '-c', '4', ...args, `127.0.0.1:${port}`]);
}

async function useEnvoy(port: number): Promise<void> {
  const envoy = await startEnvoy({ config: proxyBootstrap(port) });
  await useGrpcJs(envoy.port);
  await envoy.stop();
}

async function useCurl(port: number): Promise<void> {
  const url = `http://127.0.0.1:${port}/test.Echo/Call`;
  const headers = ['-H', 'content-type: application/grpc', '-H', 'te: trailers'];
  const body = join(import.meta.dirname, 'methods.ts');
  const post = ['--data-binary', `@${body}`, ...headers, url];
  await run('curl', ['-s', '--http2-prior-knowledge', '-o', '-', ...post, '--next', '-s', url]);
}

await record('grpc-js', useGrpcJs);
await record('grpc-js-gzip', (port) => useGrpcJs(port, true));
await record('node-http2', useNodeHttp2);
await record('h2load', useH2load);
await record('grpc-go', (port) => useGhz(port));
await record('grpc-go-gzip', (port) => useGhz(port, ['--enable-compression']));
await record('envoy', useEnvoy);
await record('curl', useCurl);
process.exit();
