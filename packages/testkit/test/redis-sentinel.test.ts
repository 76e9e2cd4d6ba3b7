import { startRedisSentinels } from '@tollgate/testkit/redis-sentinel';
import t from 'tap';

t.test('sentinels name the primary, also after a failover', async (t) => {
  const { master, address, sentinels, primary, replica, replicated, failover, stop } =
    await startRedisSentinels({ sentinels: 2, password: 'data', sentinelPassword: 'watch' });
  t.teardown(stop);
  t.equal(address, [master, ...sentinels.map((sentinel) => sentinel.address)].join(','));
  const [old, next] = await Promise.all([primary(), replica()]);
  await old.command('SET', 'key', 'value');
  await replicated();
  t.equal(await next.command('GET', 'key'), 'value');
  await t.rejects(next.command('SET', 'key', 'other'), { message: /READONLY/ });

  await old.kill();
  await failover();
  t.equal(await primary(), next);
  t.equal(await next.command('SET', 'key', 'other'), 'OK');
  await stop();
  t.same(
    [old, next, ...sentinels].map((server) => server.isRunning()),
    [false, false, false, false],
  );
});
