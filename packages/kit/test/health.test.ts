import { Health } from '@tollgate/kit/health';
import t from 'tap';

t.test('health is the conjunction of its components', (t) => {
  const health = new Health();
  t.equal(health.isHealthy(), true, 'without components');
  const cache = health.component('cache', { healthy: true });
  const config = health.component('config', { healthy: false });
  t.equal(health.isHealthy(), false);
  config.set(true);
  t.equal(health.isHealthy(), true);
  cache.set(false);
  t.same(health.report(), { cache: false, config: true });
  t.end();
});

t.test('listeners are called for changes of the overall health until they unsubscribe', (t) => {
  const health = new Health();
  const received: boolean[] = [];
  const leave = health.onChange((healthy) => received.push(healthy));
  const one = health.component('one', { healthy: true });
  const two = health.component('two', { healthy: false });
  one.set(false);
  one.set(true);
  two.set(true);
  two.set(true);
  t.same(received, [false, true]);
  leave();
  two.set(false);
  t.same(received, [false, true]);
  t.end();
});

t.test('two components of one name throw', (t) => {
  const health = new Health();
  health.component('cache', { healthy: true });
  t.throws(() => health.component('cache', { healthy: false }), /cache/);
  t.end();
});
