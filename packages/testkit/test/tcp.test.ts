import { once } from 'node:events';
import { createServer } from 'node:net';
import t from 'tap';
import { freePort, withFreePort } from '../src/tcp.ts';

t.test('a free port can be listened on', async (t) => {
  const server = createServer().listen(await freePort(), '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  t.ok(server.listening);
});

t.test('concurrent callers get different ports', async (t) => {
  const ports = await Promise.all(Array.from({ length: 50 }, freePort));
  t.equal(new Set(ports).size, ports.length);
});

t.test('a port taken meanwhile is replaced by another', async (t) => {
  const tried: number[] = [];
  const used = await withFreePort(async (port) => {
    tried.push(port);
    if (tried.length < 3) throw new Error('bind: Address already in use');
    return port;
  });
  t.equal(tried.length, 3);
  t.equal(used, tried[2]);
});

t.test('any other failure is passed on at once', async (t) => {
  let calls = 0;
  const start = () => {
    calls++;
    return Promise.reject(new Error('out of memory'));
  };
  await t.rejects(withFreePort(start), { message: 'out of memory' });
  t.equal(calls, 1);
});
