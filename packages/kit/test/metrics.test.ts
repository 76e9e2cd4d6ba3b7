import { createServer } from 'node:net';
import { addProcessMetrics, MetricsServer } from '@tollgate/kit/metrics';
import { Counter, Registry } from 'prom-client';
import t, { type Test } from 'tap';

async function start(t: Test, registry: Registry): Promise<MetricsServer> {
  const server = new MetricsServer({ registry, host: '127.0.0.1', port: 0 });
  await server.start();
  t.teardown(() => server.stop());
  return server;
}

t.test('a scraper gets the metrics of the registry and of the process', async (t) => {
  const registry = new Registry();
  addProcessMetrics(registry);
  t.teardown(() => registry.clear());
  new Counter({ name: 'hits_total', help: 'Hits.', registers: [registry] }).inc(3);
  const server = await start(t, registry);
  const response = await fetch(`${server.url()}?name=x`);
  t.equal(response.status, 200);
  t.match(response.headers.get('content-type'), 'text/plain');
  const text = await response.text();
  t.match(text, /^hits_total 3$/m);
  t.match(text, /^nodejs_eventloop_lag_p99_seconds /m);
  t.match(text, /^nodejs_heap_size_used_bytes /m);
});

t.test('other paths and methods are rejected', async (t) => {
  const server = await start(t, new Registry());
  t.equal((await fetch(server.url().replace('/metrics', '/'))).status, 404);
  const post = await fetch(server.url(), { method: 'POST', body: 'x' });
  t.equal(post.status, 405);
  t.equal(post.headers.get('allow'), 'GET, HEAD');
  t.equal((await fetch(server.url(), { method: 'HEAD' })).status, 200);
});

t.test('metrics outside the registry come first, and a failure ends the response', async (t) => {
  const registry = new Registry();
  new Counter({ name: 'hits_total', help: 'Hits.', registers: [registry] }).inc(3);
  let fails = false;
  async function* writeOthers() {
    yield 'others 1\n';
    if (fails) throw new Error('no more');
    yield 'others 2\n';
  }
  const server = new MetricsServer({ registry, host: '127.0.0.1', port: 0, writeOthers });
  await server.start();
  t.teardown(() => server.stop());
  const text = await (await fetch(server.url())).text();
  t.match(text, /^others 1\nothers 2\n# HELP hits_total Hits\.\n/);
  t.equal(await (await fetch(server.url(), { method: 'HEAD' })).text(), '');
  fails = true;
  await t.rejects(async () => (await fetch(server.url())).text());
});

t.test('one server serves several paths', async (t) => {
  const server = new MetricsServer({
    registry: new Registry(),
    host: '127.0.0.1',
    port: 0,
    path: '/',
    otherPaths: ['/metrics'],
  });
  await server.start();
  t.teardown(() => server.stop());
  for (const [path, status] of [
    ['', 200],
    ['metrics', 200],
    ['metric', 404],
  ] as const)
    t.equal((await fetch(`${server.url()}${path}`)).status, status, path);
});

t.test('a collector that fails is a 500 and does not end the process', async (t) => {
  const registry = new Registry();
  new Counter({
    name: 'broken_total',
    help: 'Broken.',
    registers: [registry],
    collect() {
      throw new Error('broken collector');
    },
  });
  const server = await start(t, registry);
  const response = await fetch(server.url());
  t.equal(response.status, 500);
  t.equal(await response.text(), '');
});

t.test('a port in use fails the start', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const address = other.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const server = new MetricsServer({ registry: new Registry(), host: '127.0.0.1', port });
  await t.rejects(server.start(), { code: 'EADDRINUSE' });
  await server.stop();
});

t.test('a stop closes idle connections and is idempotent', async (t) => {
  const server = await start(t, new Registry());
  const url = server.url();
  await (await fetch(url)).text();
  await server.stop();
  await server.stop();
  await t.rejects(fetch(url));
  t.throws(() => server.url(), TypeError);
});
