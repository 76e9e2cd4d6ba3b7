import { once } from 'node:events';
import { createConnection } from 'node:net';
import t from 'tap';
import { startEcho } from '../src/echo.ts';
import { startTcpProxy } from '../src/tcp-proxy.ts';

const echo = await startEcho();
t.teardown(echo.stop);

async function startProxy(t: Pick<import('tap').Test, 'teardown'>) {
  const proxy = await startTcpProxy(echo.port);
  t.teardown(proxy.stop);
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${proxy.port}${path}`)).status;
  return { proxy, get };
}

t.test('a held connection continues later', async (t) => {
  const { proxy, get } = await startProxy(t);
  t.equal(await get('/a'), 200);
  proxy.set('hold');
  const seen = echo.requests.length;
  const late = get('/b');
  // Arrives at the server beside the proxy, so that the one above would have arrived as well.
  t.equal((await fetch(`${echo.url}/c`)).status, 200);
  t.equal(echo.requests.length, seen + 1);
  proxy.set('forward');
  t.equal(await late, 200);
});

t.test('connections are reset, and new ones refused', async (t) => {
  const { proxy, get } = await startProxy(t);
  const socket = createConnection(proxy.port, '127.0.0.1');
  await once(socket, 'connect');
  proxy.set('refuse');
  await t.rejects(once(socket, 'data'), { code: 'ECONNRESET' });
  await t.rejects(get('/a'));
  proxy.set('forward');
  proxy.slowDown(1);
  t.equal(await get('/a'), 200);
});

t.test('new connections go to another port', async (t) => {
  const { proxy, get } = await startProxy(t);
  const other = await startEcho();
  t.teardown(other.stop);
  proxy.redirect(other.port);
  t.equal(await get('/a'), 200);
  t.equal(other.requests.length, 1);
});
