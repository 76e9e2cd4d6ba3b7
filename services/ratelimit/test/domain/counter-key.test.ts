import t from 'tap';
import { counterKey } from '../../src/domain/counter-key.ts';

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
