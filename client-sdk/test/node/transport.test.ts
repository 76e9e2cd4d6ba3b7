import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { parseProxy } from '../../src/node/proxy.ts';
import type { NodeTransportOptions } from '../../src/node.ts';
import { nodeTransport, proxyFromEnvironment } from '../../src/node.ts';

const certificates = makeCertificates();
t.teardown(() => certificates.remove());

async function listen(t: Test, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

const echo: RequestListener = async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const { method, url, headers } = request;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ method, url, headers, body, subject: subjectOf(request) }));
};

function subjectOf({ socket }: IncomingMessage): string | undefined {
  return 'getPeerCertificate' in socket
    ? String((socket as TLSSocket).getPeerCertificate().subject?.CN)
    : undefined;
}

function transport(t: Test, options: NodeTransportOptions = {}) {
  const fetch = nodeTransport(options);
  t.teardown(() => fetch.close());
  return fetch;
}

const startHttp = async (t: Test, handler = echo) =>
  `http://127.0.0.1:${await listen(t, createServer(handler))}`;

async function startHttps(t: Test, options: ServerOptions = {}) {
  const { cert, key } = certificates.server;
  const server = createSecureServer({ cert, key, ca: certificates.ca.cert, ...options }, echo);
  return `https://127.0.0.1:${await listen(t, server)}`;
}

/** A proxy that records requests, tunnels, and answers absolute-form requests itself. */
async function startProxy(t: Test, { wants, isSecure = false }: { wants?: string; isSecure?: boolean } = {}) {
  const proxied: string[] = [];
  const { cert, key } = certificates.issue({ name: 'proxy', subjectAltNames: ['IP:127.0.0.1'] });
  const proxy = isSecure ? createSecureServer({ cert, key }) : createServer();
  proxy.on('request', (request, response) => {
    proxied.push(`${request.method} ${request.url} ${request.headers['proxy-authorization'] ?? '-'}`);
    response.end(JSON.stringify({ host: request.headers.host }));
  });
  proxy.on('connect', (request: IncomingMessage, client: Socket) => {
    proxied.push(`CONNECT ${request.headers['proxy-authorization'] ?? '-'}`);
    if (wants !== undefined && request.headers['proxy-authorization'] !== wants) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const [host, port] = (request.url ?? '').split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [upstream, client]) socket.on('error', () => socket.destroy());
    t.teardown(() => upstream.destroy());
    t.teardown(() => client.destroy());
  });
  return { proxied, port: await listen(t, proxy) };
}

t.test('texts, forms, bytes and streams are sent as fetch sends them', async (t) => {
  const url = await startHttp(t);
  const fetch = transport(t);
  const send = async (body: RequestInit['body'], headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/a?b=c`, { method: 'post', body: body ?? null, headers });
    return (await response.json()) as {
      method: string;
      url: string;
      body: string;
      headers: Record<string, string>;
    };
  };
  t.match(await send('text'), {
    method: 'POST',
    url: '/a?b=c',
    body: 'text',
    headers: { 'content-type': /^text\/plain/ },
  });
  t.match(await send(new URLSearchParams({ a: 'ä' })), {
    body: 'a=%C3%A4',
    headers: { 'content-type': /^application\/x-www-form-urlencoded/ },
  });
  t.match(await send('{}', { 'content-type': 'application/json' }), {
    headers: { 'content-type': 'application/json' },
  });
  t.match(await send(new TextEncoder().encode('bytes')), { body: 'bytes' });
  t.match(await send(new Blob(['blob']).stream()), { body: 'blob' });
  t.match(await send(null), { body: '' });
});

t.test('status, repeated headers and empty bodies are returned; redirects are not followed', async (t) => {
  const url = await startHttp(t, (request, response) => {
    if (request.url === '/204') response.writeHead(204).end();
    else response.writeHead(302, { location: '/x', 'set-cookie': ['a=1', 'b=2'] }).end('moved');
  });
  const fetch = transport(t);
  const empty = await fetch(`${url}/204`);
  t.equal(empty.status, 204);
  t.equal(empty.body, null);
  const moved = await fetch(url);
  t.equal(moved.status, 302);
  t.same(moved.headers.getSetCookie(), ['a=1', 'b=2']);
  t.equal(await moved.text(), 'moved');
});

t.test('connections are kept for the next request', async (t) => {
  const ports = new Set<number | undefined>();
  const url = await startHttp(t, (request, response) => {
    ports.add(request.socket.remotePort);
    response.end('ok');
  });
  const fetch = transport(t);
  for (let n = 0; n < 3; n += 1) await (await fetch(url)).text();
  t.equal(ports.size, 1);
});

t.test('the client certificate is offered to every https server', async (t) => {
  const url = await startHttps(t, { requestCert: true, rejectUnauthorized: true });
  const { cert, key } = certificates.client;
  const fetch = transport(t, { cert, key, ca: certificates.ca.cert });
  t.match(await (await fetch(url)).json(), { subject: 'client' });
});

t.test('a certificate with an encrypted key needs its password', async (t) => {
  const url = await startHttps(t, { requestCert: true, rejectUnauthorized: true });
  const { cert, keyFile } = certificates.client;
  const encrypted = join(certificates.folder, 'encrypted.key');
  execFileSync('openssl', [
    'pkey',
    '-in',
    keyFile,
    '-aes256',
    '-passout',
    'pass:open sesame',
    '-out',
    encrypted,
  ]);
  const key = readFileSync(encrypted, 'utf8');
  const ca = certificates.ca.cert;
  const fetch = transport(t, { cert, key, ca, passphrase: 'open sesame' });
  t.match(await (await fetch(url)).json(), { subject: 'client' });
  t.throws(() => nodeTransport({ cert, key, ca, passphrase: 'wrong' }), { name: 'ConfigurationError' });
  t.throws(() => nodeTransport({ cert }), { message: /both cert and key/ });
});

t.test(
  'authorities come from text, a file or a folder; without one an unknown server is refused',
  async (t) => {
    const url = await startHttps(t);
    const folder = t.testdir({});
    writeFileSync(join(folder, 'ca.pem'), certificates.ca.cert);
    for (const options of [
      { ca: certificates.ca.cert },
      { caFile: certificates.ca.certFile },
      { caPath: folder },
    ]) {
      t.equal((await transport(t, options)(url)).status, 200);
    }
    await t.rejects(transport(t)(url), {
      name: 'TypeError',
      cause: { code: 'SELF_SIGNED_CERT_IN_CHAIN' },
    });
    t.equal((await transport(t, { verify: false })(url)).status, 200);
    t.throws(() => nodeTransport({ caFile: join(folder, 'missing.pem') }), { message: /caFile/ });
    t.throws(() => nodeTransport({ caPath: join(folder, 'missing') }), { message: /caPath/ });
  },
);

t.test(
  'https goes through a tunnel of the proxy, kept for the next request, with credentials for the proxy alone',
  async (t) => {
    const url = await startHttps(t, { requestCert: true, rejectUnauthorized: true });
    const wants = `Basic ${btoa('us er:pa:ss')}`;
    const { proxied, port } = await startProxy(t, { wants });
    const { cert, key } = certificates.client;
    const proxy = `http://us%20er:pa%3Ass@127.0.0.1:${port}`;
    const fetch = transport(t, { cert, key, ca: certificates.ca.cert, proxy });
    for (let n = 0; n < 2; n += 1) {
      const answer = (await (await fetch(url)).json()) as { headers: object };
      t.match(answer, { subject: 'client' });
      t.notMatch(answer.headers, { 'proxy-authorization': /./ });
    }
    t.same(proxied, [`CONNECT ${wants}`]);
  },
);

t.test('a proxy that refuses the tunnel is named as the reason', async (t) => {
  const { port } = await startProxy(t, { wants: 'nobody' });
  const fetch = transport(t, { proxy: `http://127.0.0.1:${port}` });
  await t.rejects(fetch('https://as.test/'), { cause: { message: /407.*credentials/ } });
});

t.test('http goes to the proxy in absolute form, hosts of noProxy directly', async (t) => {
  const { proxied, port } = await startProxy(t);
  const fetch = transport(t, { proxy: `http://127.0.0.1:${port}`, noProxy: ['127.0.0.1'] });
  t.match(await (await fetch('http://api.test/path?q=1')).json(), { host: 'api.test' });
  t.match(await (await fetch(await startHttp(t))).json(), { url: '/' });
  t.same(proxied, ['GET http://api.test/path?q=1 -']);
});

t.test('a proxy can be spoken to over TLS, for https and http alike', async (t) => {
  const { proxied, port } = await startProxy(t, { isSecure: true });
  const fetch = transport(t, { ca: certificates.ca.cert, proxy: `https://127.0.0.1:${port}` });
  const { port: targetPort } = new URL(await startHttps(t));
  t.match(await (await fetch(`https://localhost:${targetPort}`)).json(), { url: '/' });
  t.match(await (await fetch('http://api.test/x')).json(), { host: 'api.test' });
  t.same(proxied, ['CONNECT -', 'GET http://api.test/x -']);
});

t.test('hosts without proxy are named with or without subdomains and ports', (t) => {
  const bypasses = (pattern: string, url: string) => parseProxy('http://p', [pattern]).bypasses(new URL(url));
  t.ok(bypasses('Example.com', 'https://example.com/'));
  t.ok(bypasses('example.com', 'https://a.example.com/'));
  t.notOk(bypasses('example.com', 'https://notexample.com/'));
  t.ok(bypasses('.example.com', 'https://a.example.com/'));
  t.notOk(bypasses('.example.com', 'https://example.com/'));
  t.ok(bypasses('example.com:443', 'https://example.com/'));
  t.notOk(bypasses('example.com:443', 'http://example.com/'));
  t.ok(bypasses('::1', 'http://[::1]:80/'));
  t.ok(bypasses('*', 'http://any/'));
  t.notOk(bypasses(' ', 'http://any/'));
  t.end();
});

t.test('the environment names proxies and the hosts without one', (t) => {
  t.same(proxyFromEnvironment({ HTTPS_PROXY: 'http://p:1', NO_PROXY: 'a.test, .b.test,' }), {
    proxy: 'http://p:1',
    noProxy: ['a.test', '.b.test'],
  });
  t.same(proxyFromEnvironment({}), { noProxy: [] });
  t.throws(() => nodeTransport({ proxy: 'socks5://u:secret@p:1' }), { message: /^proxy must be a URL/ });
  t.end();
});

t.test('an aborted signal ends the request with its reason, also while the body is read', async (t) => {
  const url = await startHttp(t, (request, response) => {
    if (request.url === '/begin') response.write('begin');
  });
  const fetch = transport(t);
  const before = new AbortController();
  before.abort(new Error('never mind'));
  await t.rejects(fetch(url, { signal: before.signal }), { message: 'never mind' });
  const during = new AbortController();
  const waiting = fetch(url, { signal: during.signal });
  during.abort(new Error('enough'));
  await t.rejects(waiting, { message: 'enough' });
  const reading = new AbortController();
  const response = await fetch(`${url}/begin`, { signal: reading.signal });
  const text = response.text();
  reading.abort(new Error('too long'));
  await t.rejects(text, { message: 'too long' });
});

t.test(
  'servers that cannot be reached, hang, or never finish a handshake are errors with a code',
  async (t) => {
    const silent = createTcpServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const sockets = new Set<Socket>();
    silent.on('connection', (socket) => sockets.add(socket));
    t.teardown(() => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    });
    const { port } = silent.address() as AddressInfo;
    await t.rejects(transport(t, { idleTimeoutMs: 50 })(`http://127.0.0.1:${port}`), {
      cause: { message: 'no data for 50 ms' },
    });
    await t.rejects(transport(t, { connectTimeoutMs: 50 })(`https://127.0.0.1:${port}`), {
      cause: { code: 'UND_ERR_CONNECT_TIMEOUT' },
    });
    await t.rejects(
      transport(t, { connectTimeoutMs: 50, proxy: `http://127.0.0.1:${port}` })('https://as.test'),
      { cause: { code: 'UND_ERR_CONNECT_TIMEOUT' } },
    );
    const gone = createTcpServer();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port: freePort } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    await t.rejects(transport(t)(`http://127.0.0.1:${freePort}`), { cause: { code: 'ECONNREFUSED' } });
    const closed = nodeTransport();
    closed.close();
    await t.rejects(closed(`http://127.0.0.1:${port}`), { cause: { message: 'the transport is closed' } });
  },
);
