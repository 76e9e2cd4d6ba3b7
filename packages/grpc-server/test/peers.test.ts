import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Client, credentials } from '@grpc/grpc-js';
import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { startEnvoy } from '@tollgate/testkit/envoy';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { findBinary } from '@tollgate/testkit/processes';
import t, { type Test } from 'tap';
import { healthMethods, ServingStatus } from '../src/health.ts';
import { GrpcServer, type ServerOptions } from '../src/server.ts';
import { proxyBootstrap } from './support/envoy-proxy.ts';

const echo = '/test.Echo/Call';
const run = promisify(execFile);
const timeout = 60_000;

async function start(t: Test, options: Partial<ServerOptions> = {}) {
  const health = healthMethods({ status: () => ServingStatus.SERVING, onChange: () => () => undefined });
  let calls = 0;
  const server = new GrpcServer({
    methods: {
      unary: {
        ...health.unary,
        [echo]: (message) => {
          calls++;
          return message;
        },
      },
      streaming: health.streaming,
    },
    ...options,
  });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.drain(AbortSignal.abort()));
  return { port, calls: () => calls };
}

/** Why a program cannot be run here; `false` when it can. In CI it is an error. */
function missing(find: () => string): string | false {
  try {
    find();
    return false;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return `left out: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function certificates(t: Test): Certificates {
  const files = makeCertificates();
  t.teardown(files.remove);
  return files;
}

const withoutGhz = { skip: missing(() => findBinary('ghz')) };
const withoutH2load = { skip: missing(() => findBinary('h2load')) };
const withoutCurl = { skip: missing(() => findBinary('curl')) };

/** Runs ghz, a load generator on grpc-go. @returns the number of calls by status. */
async function ghz(port: number, args: readonly string[]): Promise<unknown> {
  const definitions = resolve(import.meta.dirname, '../../../proto/definitions');
  const call = ['--proto', join(definitions, 'grpc/health/v1/health.proto'), '--format=json', '-d', '{}'];
  const { stdout } = await run(findBinary('ghz'), [...call, ...args, `127.0.0.1:${port}`], { timeout });
  return (JSON.parse(stdout) as { statusCodeDistribution: unknown }).statusCodeDistribution;
}

const check = ['--call', 'grpc.health.v1.Health/Check', '-n', '500', '-c', '20', '--connections=2'];

t.test('grpc-go gets its replies, plain and compressed', withoutGhz, async (t) => {
  const { port } = await start(t);
  t.strictSame(await ghz(port, ['--insecure', ...check]), { OK: 500 });
  t.strictSame(await ghz(port, ['--insecure', '--enable-compression', ...check]), { OK: 500 });
});

t.test('grpc-go connects by TLS with ALPN and a client certificate', withoutGhz, async (t) => {
  const files = certificates(t);
  const { port } = await start(t, {
    tls: { cert: files.server.cert, key: files.server.key, ca: files.ca.cert, requestCert: true },
    refusal: ({ certificate }) =>
      certificate?.subjectaltname?.includes('DNS:client.test') ? undefined : 'not for client.test',
  });
  const pair = ({ certFile, keyFile }: { certFile: string; keyFile: string }) => [
    ...['--cacert', files.ca.certFile, '--cert', certFile, '--key', keyFile],
  ];
  t.strictSame(await ghz(port, [...pair(files.client), ...check]), { OK: 500 });
  const other = files.issue({ name: 'other', subjectAltNames: ['DNS:other.test'] });
  t.strictSame(await ghz(port, [...pair(other), ...check]), { Unauthenticated: 500 });
});

t.test('h2load gets its replies, in plaintext and by TLS', withoutH2load, async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const body = join(folder.path, 'body');
  writeFileSync(body, Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]));
  const files = certificates(t);
  const headers = ['--header=content-type: application/grpc', '--header=te: trailers'];
  for (const scheme of ['http', 'https']) {
    const tls = { cert: files.server.cert, key: files.server.key };
    const { port, calls } = await start(t, scheme === 'https' ? { tls } : {});
    const load = ['-n2000', '-c4', '-m25', `--data=${body}`, ...headers];
    const { stdout } = await run(findBinary('h2load'), [...load, `${scheme}://127.0.0.1:${port}${echo}`], {
      timeout,
    });
    t.match(stdout, /2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout/);
    t.equal(calls(), 2000);
  }
});

t.test('curl sees the headers, the message and the trailers', withoutCurl, async (t) => {
  const { port } = await start(t);
  const url = `http://127.0.0.1:${port}`;
  const curl = async (...args: string[]) =>
    await run(findBinary('curl'), ['-sv', '--http2-prior-knowledge', ...args], {
      timeout,
      encoding: 'buffer',
    });
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const body = join(folder.path, 'body');
  writeFileSync(body, Buffer.from([0, 0, 0, 0, 2, 0x68, 0x69]));
  const grpc = ['-H', 'content-type: application/grpc', '-H', 'te: trailers', '--data-binary', `@${body}`];
  const reply = await curl(...grpc, `${url}${echo}`);
  t.strictSame(reply.stdout, Buffer.from([0, 0, 0, 0, 2, 0x68, 0x69]));
  t.match(
    reply.stderr.toString(),
    /< HTTP\/2 200[\s\S]*< content-type: application\/grpc[\s\S]*< grpc-status: 0/,
  );
  const unknown = await curl(...grpc, `${url}/test.Echo/Unknown`);
  t.match(
    unknown.stderr.toString(),
    /< grpc-status: 12[\s\S]*< grpc-message: unknown method \/test.Echo\/Unknown/,
  );
  const get = await curl(url);
  t.match(get.stderr.toString(), /< HTTP\/2 405[\s\S]*< allow: POST/);
  t.match(get.stdout.toString(), /only POST is allowed/);
});

t.test('Envoy passes calls and statuses of many clients on', async (t) => {
  const { port } = await start(t);
  const envoy = await startEnvoy({ config: proxyBootstrap(port) });
  t.teardown(envoy.stop);
  const pass = (bytes: Buffer) => bytes;
  const call = (client: Client, path: string, message: Buffer) =>
    new Promise<Buffer | number | undefined>((done) => {
      client.makeUnaryRequest(path, pass, pass, message, (error, reply) => done(error?.code ?? reply));
    });
  const clients = Array.from(
    { length: 4 },
    () =>
      new Client(`127.0.0.1:${envoy.port}`, credentials.createInsecure(), {
        'grpc.use_local_subchannel_pool': 1,
      }),
  );
  t.teardown(() => {
    for (const client of clients) client.close();
  });
  const sizes = [0, 100, 16_379, 16_380, 300_000];
  for (const size of sizes) {
    const message = Buffer.alloc(size, 'm');
    const replies = await Promise.all(clients.map((client) => call(client, echo, message)));
    t.ok(
      replies.every((reply) => Buffer.isBuffer(reply) && reply.equals(message)),
      `${size} bytes`,
    );
  }
  const [client] = clients;
  t.equal(client && (await call(client, '/test.Echo/Unknown', Buffer.alloc(0))), 12);
});
