import { statSync } from 'node:fs';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { sendTcp } from '../src/tcp.ts';

t.test('a Redis responds on its port until stop', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);

  t.equal(await sendTcp('PING\r\n', { host: redis.host, port: redis.port }), '+PONG\r\n');
  await redis.stop();
  t.equal(redis.isRunning(), false);
  await t.rejects(sendTcp('PING\r\n', { host: redis.host, port: redis.port }), { code: 'ECONNREFUSED' });
});

t.test('a Redis with a password refuses unauthenticated clients', async (t) => {
  const redis = await startRedis({ password: 'sesame' });
  t.teardown(redis.stop);

  t.match(await sendTcp('PING\r\n', { port: redis.port }), /^-NOAUTH/);
  t.equal(await sendTcp('AUTH sesame\r\n', { port: redis.port }), '+OK\r\n');
});

t.test('a Redis with a Unix socket responds there and removes it at the end', async (t) => {
  const redis = await startRedis({ unixSocket: true, args: ['--maxmemory', '10mb'] });
  t.teardown(redis.stop);

  t.equal(await sendTcp('PING\r\n', { path: redis.socketPath }), '+PONG\r\n');
  t.match(await sendTcp('CONFIG GET maxmemory\r\n', { path: redis.socketPath }), /10485760/);
  await redis.stop();
  t.throws(() => statSync(redis.socketPath), { code: 'ENOENT' });
});

t.test('a Redis that cannot start reports the reason', async (t) => {
  await t.rejects(startRedis({ args: ['--no-such-option', '1'] }), { message: /no-such-option/ });
});
