import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { startWebServer } from '@tollgate/testkit/web-server';
import t, { type Test } from 'tap';
import packageJson from '../package.json' with { type: 'json' };
import { cli } from './helpers/tollgate.ts';

/** Starts a web server and returns its port. */
async function serve(t: Test, answer: RequestListener): Promise<number> {
  return (await startWebServer(t, answer)).port;
}

/** A server whose Date header is wrong by so much. */
const serveDate =
  (differenceMs: number): RequestListener =>
  (_, response) => {
    response.setHeader('date', new Date(Date.now() + differenceMs).toUTCString()).end('ok');
  };

t.test('each problem has its remedy, and exit code 3', async (t) => {
  const tollgate = cli(t);
  const ahead = await serve(t, serveDate(60_000));
  const behind = await serve(t, serveDate(-60_000));
  const right = await serve(t, serveDate(0));
  const sick = await serve(t, (_, response) => response.writeHead(500).end('no Redis'));
  const url = (port: number) => `http://127.0.0.1:${port}/ready`;
  t.match(await tollgate('doctor', '--ready', url(right)), {
    exitCode: 0,
    output: /^STATUS .*\nok +port .*\nok +clock .* the same as here.*\nok +ready +\S+ +ok +-\n$/,
  });
  const found = await tollgate(
    'doctor',
    '--ready',
    url(ahead),
    url(behind),
    url(sick),
    'http://127.0.0.1:1/',
  );
  t.match(found, { exitCode: 3, errors: '4 problems\n' });
  t.match(found.output, /FAILED +clock .* \d\d s ahead of this machine +synchronize both clocks/);
  t.match(found.output, /FAILED +clock .* \d\d s behind this machine +synchronize both clocks/);
  t.match(found.output, /FAILED +ready .* 500 no Redis +check what the service needs/);
  t.match(found.output, /FAILED +port .*:1\/ .* nothing listens there: start the service/);
  t.match(await tollgate('doctor'), { exitCode: 2, errors: /nothing to check/ });
  t.match(await tollgate('doctor', '--ready', 'localhost'), {
    exitCode: 2,
    errors: /not an http or https URL .*: localhost\. Expected/,
  });
});

t.test('versions are those of the command, and of each other', async (t) => {
  const servePages = (pages: Readonly<Record<string, string>>, differenceMs = 0) =>
    serve(t, ({ url = '' }, response) => {
      const { [url]: page } = pages;
      response.setHeader('date', new Date(Date.now() + differenceMs).toUTCString());
      response.writeHead(page === undefined ? 404 : 200).end(page);
    });
  const { version } = packageJson;
  const auth = await servePages({ '/ready': '{}', '/health': `{"version":"v${version}"}` });
  const limiter = await servePages({
    '/v1/overrides?limit=1': '{"overrides":[]}',
    '/v1/settings': '{"version":"9.1.0"}',
  });
  const xds = await servePages({ '/readyz': 'ok', '/v1/status': `{"release":"${version}"}` }, -60_000);
  const metrics = `tollgate_build_info{version="${version}"} 1\n`;
  const webConsole = await servePages({ '/readyz': 'ok', '/metrics': metrics });
  const url = (port: number) => `http://127.0.0.1:${port}`;
  const variables = (limiterPort: number, xdsPort: number) => ({
    TOLLGATE_AUTH_URL: url(auth),
    TOLLGATE_LIMITER_URLS: url(limiterPort),
    TOLLGATE_XDS_URL: url(xdsPort),
    TOLLGATE_CONSOLE_URL: url(webConsole),
  });
  const found = await cli(t, variables(limiter, xds))('doctor');
  t.match(found, { exitCode: 3, errors: '3 problems\n' });
  t.match(found.output, /FAILED +clock .* \d\d s behind this machine/);
  t.match(
    found.output,
    new RegExp(`FAILED +version +${url(limiter)} +9.1.0, and tollgate is ${version} +install`),
  );
  const groups = `${version}: ${url(auth)} ${url(xds)} ${url(webConsole)}; 9.1.0: ${url(limiter)}`;
  t.match(found.output, new RegExp(`FAILED +version +all services +${groups} +complete the roll-out`));
  const other = await servePages({ '/readyz': 'ok' });
  t.match(
    (await cli(t, variables(limiter, other))('doctor')).output,
    /version .* unknown: 404 for \/v1\/status/,
  );
});

t.test('certificates are checked for trust, names and their end', async (t) => {
  const tollgate = cli(t);
  const { server } = makeCertificates();
  const tls = createServer({ key: server.key, cert: server.cert }, serveDate(0)).listen(0, '127.0.0.1');
  await once(tls, 'listening');
  t.teardown(() => tls.close());
  const { port } = tls.address() as AddressInfo; // Typed for sockets of files, too.
  const plain = await serve(t, serveDate(0));
  const found = await tollgate(
    'doctor',
    '--ready',
    `https://127.0.0.1:${port}/`,
    `https://127.0.0.1:${plain}/`,
  );
  t.match(found, { exitCode: 3 });
  t.match(found.output, new RegExp(`FAILED +tls +https://127.0.0.1:${port}/ .*NODE_EXTRA_CA_CERTS`));
  t.match(found.output, new RegExp(`FAILED +tls +https://127.0.0.1:${plain}/ .*does not speak TLS`));
});

t.test('files of settings are checked as the services do', async (t) => {
  const tollgate = cli(t);
  const write = (name: string, text: string) => {
    const path = join(t.testdirName, name);
    writeFileSync(path, text);
    return path;
  };
  const limiter = write('limiter.env', 'BACKEND_TYPE=memory\nPORT=80800\nLOG_LEVL=info\nADMIN_TOKEN=short\n');
  const xds = write('xds.env', 'XDS_SOURCE=folder\nXDS_FOLDER=/tmp\n');
  const auth = write('auth.env', 'SVC_MODE=development\nPORT=none\n');
  const settings = [`ratelimit=${limiter}`, `xds=${xds}`, `auth=${auth}`];
  const found = await tollgate('doctor', '--settings', ...settings);
  t.match(found, { exitCode: 3 });
  t.match(found.output, /^FAILED +settings +\S+limiter.env +PORT is "80800" +expected a TCP port/m);
  t.match(found.output, /LOG_LEVL is no setting +did you mean LOG_LEVEL\?/);
  t.match(found.output, /^ok +settings +\S+xds.env +valid for services\/xds/m);
  t.match(found.output, /^FAILED +settings +\S+auth.env +PORT is "none" +expected/m);
  t.notMatch(found.output, /short/, 'secrets are hidden');
  t.match(await tollgate('doctor', '--settings', limiter), { exitCode: 2, errors: /not a file of settings/ });
  t.match(await tollgate('doctor', '--settings', 'auth=/none'), { exitCode: 2, errors: /cannot be read/ });
});
