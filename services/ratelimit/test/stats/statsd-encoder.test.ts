import t from 'tap';
import { countReservedTags, tagSuffix } from '../../src/stats/stat-tags.ts';
import { createStatsRegistry } from '../../src/stats/stats-registry.ts';
import { createStatsdEncoder } from '../../src/stats/statsd-encoder.ts';

const plain = createStatsdEncoder({});

t.test('a counter is sent as what it gained', async (t) => {
  t.equal(plain.counter({ name: 'a.b', tags: undefined, value: 12, delta: 5 }), 'a.b:5|c\n');
});

t.test('a gauge is sent as it stands', async (t) => {
  t.equal(plain.gauge({ name: 'a.b', tags: undefined, value: 0 }), 'a.b:0|g\n');
});

t.test('timings are sent one by one in whole milliseconds', async (t) => {
  t.strictSame(plain.timings({ name: 'a', tags: undefined, timingsMs: [0.4, 1.9, 12] }), [
    'a:0|ms\n',
    'a:1|ms\n',
    'a:12|ms\n',
  ]);
});

t.test('tags follow the name, sorted by key, with what would break the line replaced', async (t) => {
  const encoder = createStatsdEncoder({ zone: 'eu.west:1', app: 'a|b', empty: '' });
  t.equal(
    encoder.counter({ name: 'n', tags: { code: 'success' }, value: 1, delta: 1 }),
    'n.__app=a_b.__code=success.__zone=eu_west_1:1|c\n',
  );
});

t.test('without tags there is no suffix', async (t) => {
  t.equal(tagSuffix({}, undefined), '');
  t.equal(tagSuffix({ '': 'x' }), '');
});

t.test('extra tags with a reserved name are counted', async (t) => {
  const registry = createStatsRegistry();
  countReservedTags(registry, { host: 'a', region: 'b', team: 'c' });
  t.equal(registry.counter('reserved_tag').value, 2);
});

t.test('without reserved names there is no such counter', async (t) => {
  const registry = createStatsRegistry();
  countReservedTags(registry, { team: 'c' });
  t.notOk([...registry.counters()].some(({ name }) => name === 'reserved_tag'));
});
