import type { lookup } from 'node:dns';
import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { classifyAddress, fetchText, postText } from '../../src/outbound/fetch.ts';

const options = { privateHosts: ['127.0.0.1', 'localhost'], timeoutMs: 30_000, maxBytes: 1000 };

t.test('fetches a text, and follows redirects', async (t) => {
  const { port } = await startWebServer(t, ({ url }, response) => {
    if (url === '/moved') response.writeHead(302, { location: '/text' }).end();
    else response.end('ä text');
  });
  for (const url of [`http://127.0.0.1:${port}/text`, `http://localhost:${port}/moved`])
    t.equal(await fetchText(new URL(url), options), 'ä text');
});

t.test('private addresses are rejected, except for configured hosts', async (t) => {
  const { port, requests } = await startWebServer(t, (_request, response) => response.end('internal'));
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0.0.0.0'])
    await t.rejects(
      fetchText(new URL(`http://${host}:${port}/`), { ...options, privateHosts: [] }),
      { name: 'FetchRejected', message: /not public/ },
      host,
    );
  // Also when it is named: that is where clouds keep credentials.
  await t.rejects(
    fetchText(new URL('http://169.254.169.254/latest/'), { ...options, privateHosts: ['169.254.169.254'] }),
    { name: 'FetchRejected' },
  );
  t.same(requests, []);
});

t.test('a redirect to a private address is not followed', async (t) => {
  const inside = await startWebServer(t, (_request, response) => response.end('internal'));
  for (const location of [
    `http://[::1]:${inside.port}/`,
    `http://localhost:${inside.port}/`,
    'http://169.254.169.254/',
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'http://user:pass@127.0.0.1/',
  ]) {
    const { port } = await startWebServer(t, (_request, response) =>
      response.writeHead(302, { location }).end(),
    );
    const url = new URL(`http://127.0.0.1:${port}/`);
    await t.rejects(
      fetchText(url, { ...options, privateHosts: ['127.0.0.1'] }),
      { name: 'FetchRejected' },
      location,
    );
  }
  t.same(inside.requests, []);
});

t.test('redirects, size and time are limited', async (t) => {
  const { port, requests } = await startWebServer(t, ({ url }, response) => {
    if (url === '/round') response.writeHead(302, { location: '/round' }).end();
    else if (url === '/large') response.end('x'.repeat(2000));
    else if (url === '/missing') response.writeHead(404).end('x');
    else response.write('x'); // and never ends
  });
  const at = (path: string) => new URL(`http://127.0.0.1:${port}${path}`);
  await t.rejects(fetchText(at('/round'), options), { message: /redirects/ });
  t.equal(requests.length, 4);
  await t.rejects(fetchText(at('/large'), options), { message: /more than 1000 bytes/ });
  await t.rejects(fetchText(at('/missing'), options), { message: /status 404/ });
  await t.rejects(fetchText(at('/slow'), { ...options, timeoutMs: 50 }));
});

t.test('addresses are classified by network', (t) => {
  for (const address of ['8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8'])
    t.equal(classifyAddress(address), 'public', address);
  for (const address of ['10.1.2.3', '172.31.0.1', '192.168.0.1', '100.64.0.1', 'fd12::1', '::ffff:10.0.0.1'])
    t.equal(classifyAddress(address), 'private', address);
  for (const address of ['169.254.169.254', '0.0.0.0', '::', 'fe80::1', '224.0.0.1', '255.255.255.255'])
    t.equal(classifyAddress(address), 'reserved', address);
  for (const address of ['::ffff:169.254.169.254', '64:ff9b::a00:1', '2002:a00:1::', 'fd00:ec2::254'])
    t.equal(classifyAddress(address), 'reserved', address);
  for (const address of ['168.63.129.16', '::ffff:168.63.129.16', '::10.0.0.1', '::ffff:0:10.0.0.1'])
    t.equal(classifyAddress(address), 'reserved', address);
  t.equal(classifyAddress('::1'), 'private');
  t.end();
});

t.test('a name is resolved once for each connection, and none of its addresses may be private', async (t) => {
  const { port, requests } = await startWebServer(t, (_request, response) => response.end('a text'));
  const answers = [['127.0.0.1'], ['93.184.215.14', '169.254.169.254'], ['169.254.169.254']];
  const lookUp = ((_name: string, _options: unknown, callback: (...answer: unknown[]) => void) => {
    const addresses = answers.shift() ?? [];
    callback(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    );
  }) as unknown as typeof lookup; // without its overloads
  const url = new URL(`http://rebind.example:${port}/`);
  const rebinding = { ...options, privateHosts: ['rebind.example'], lookUp };
  t.equal(await fetchText(url, rebinding), 'a text');
  t.equal(answers.length, 2, 'the address that was checked is the one connected to');
  for (const left of [1, 0]) {
    await t.rejects(fetchText(url, rebinding), { name: 'FetchRejected', message: /169\.254\.169\.254/ });
    t.equal(answers.length, left);
  }
  t.equal(requests.length, 1);
});

t.test('postText requires TLS and a public address, except for listed hosts', async (t) => {
  const bodies: string[] = [];
  const { port, requests } = await startWebServer(t, (request, response) => {
    request.setEncoding('utf8').on('data', (chunk) => void bodies.push(chunk));
    const status = Number(new URL(request.url ?? '', 'http://localhost').searchParams.get('status'));
    request.on('end', () => response.writeHead(status, { location: '/' }).end('x'.repeat(100)));
  });
  const post = (url: string, privateHosts: readonly string[] = []) =>
    postText(new URL(url), { body: 'hello', privateHosts, timeoutMs: 5000 });
  await post(`http://127.0.0.1:${port}/?status=204`, ['127.0.0.1']);
  t.same(bodies, ['hello']);
  await t.rejects(post(`http://127.0.0.1:${port}/?status=204`), { message: 'http: is not https' });
  await t.rejects(post(`https://127.0.0.1:${port}/`), { message: /which is not public$/ });
  await t.rejects(post(`https://localhost:${port}/`), { message: /which is not public$/ });
  await t.rejects(post('http://169.254.169.254/', ['169.254.169.254']), { message: /which is not public$/ });
  for (const status of [302, 400, 500])
    await t.rejects(
      post(`http://127.0.0.1:${port}/?status=${status}`, ['127.0.0.1']),
      { name: 'FetchRejected', message: `the response has status ${status}` },
      String(status),
    );
  t.equal(requests.length, 4, 'redirects are not followed');
});
