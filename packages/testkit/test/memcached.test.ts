import { startMemcached } from '@tollgate/testkit/memcached';
import t from 'tap';
import { sendTcp } from '../src/tcp.ts';

t.test('a memcached responds on its port until stop', async (t) => {
  const memcached = await startMemcached();
  t.teardown(memcached.stop);

  t.match(await sendTcp('stats\r\n', { host: memcached.host, port: memcached.port }), /STAT curr_items 0/);
  await memcached.stop();
  t.equal(memcached.isRunning(), false);
});
