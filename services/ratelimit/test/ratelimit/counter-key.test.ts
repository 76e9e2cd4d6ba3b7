import t from 'tap';
import { counterKey, secondsUntilReset, windowStart } from '../../src/ratelimit/counter-key.ts';

const entry = (key: string, value: string) => ({ key, value });

t.test('a counter is named by prefix, domain, entries and window', async (t) => {
  const cases: readonly (readonly [string, Parameters<typeof counterKey>])[] = [
    ['domain_key_value_1234', ['', 'domain', [entry('key', 'value')], 1_234, 1]],
    [
      'domain_key2_value2_subkey2_subvalue2_1200',
      ['', 'domain', [entry('key2', 'value2'), entry('subkey2', 'subvalue2')], 1_234, 60],
    ],
    ['domain_key_value_997200', ['', 'domain', [entry('key', 'value')], 1_000_000, 3_600]],
    ['domain_key_value_950400', ['', 'domain', [entry('key', 'value')], 1_000_000, 86_400]],
    ['prefix:domain_key_value_1234', ['prefix:', 'domain', [entry('key', 'value')], 1_234, 1]],
    ['domain_key__1234', ['', 'domain', [entry('key', '')], 1_234, 1]],
    ['domain_files_files/*_1234', ['', 'domain', [entry('files', 'files/*')], 1_234, 1]],
    ['domain_a_b_c_1234', ['', 'domain', [entry('a_b', 'c')], 1_234, 1]],
  ];
  for (const [key, input] of cases) {
    t.equal(counterKey(...input), key);
  }
});

const day = 86_400;

t.test('windows are aligned to the epoch, whatever their unit', async (t) => {
  t.equal(windowStart(1_234, 1), 1_234);
  t.equal(windowStart(1_234, 60), 1_200);
  t.equal(windowStart(1_000_000, 3_600), 997_200);
  t.equal(windowStart(1_000_000, day), 950_400);
  t.equal(windowStart(1_000_000, 7 * day), 604_800);
  t.equal(windowStart(1_200, 60), 1_200, 'the first second belongs to its window');
  t.equal(windowStart(1_199, 60), 1_140, 'and the one before does not');
});

t.test('a reset is 1 second to a whole unit away, never 0', async (t) => {
  t.equal(secondsUntilReset(1_200, 60), 60);
  t.equal(secondsUntilReset(1_201, 60), 59);
  t.equal(secondsUntilReset(1_259, 60), 1);
  t.equal(secondsUntilReset(1_234, 1), 1);
});
