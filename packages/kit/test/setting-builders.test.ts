import {
  bool,
  duration,
  float,
  int,
  list,
  longestTimer,
  oneOf,
  pairs,
  port,
  type Setting,
  text,
} from '@tollgate/kit/settings';
import t, { type Test } from 'tap';

const common = { env: 'X', group: 'G', doc: 'D' };

function accepts(t: Test, setting: Setting<unknown>, vectors: readonly (readonly [string, unknown])[]): void {
  for (const [raw, value] of vectors) t.strictSame(setting.parse(raw), value, JSON.stringify(raw));
}

function refuses(t: Test, setting: Setting<unknown>, texts: readonly string[]): void {
  for (const raw of texts) t.equal(setting.parse(raw), undefined, JSON.stringify(raw));
}

t.test('a boolean has only the spellings of Go', (t) => {
  const setting = bool({ ...common, default: false });
  accepts(t, setting, [
    ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
    ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
  ]);
  refuses(t, setting, ['', 'yes', 'on', 'tRUE', ' true', '2', 'null']);
  t.end();
});

t.test('an integer is decimal and within its range', (t) => {
  const setting = int({ ...common, default: 1, min: -5, max: 4_294_967_295 });
  accepts(t, setting, [
    ['0', 0],
    ['-5', -5],
    ['+7', 7],
    ['4294967295', 4_294_967_295],
  ]);
  t.ok(Object.is(setting.parse('-0'), 0), 'minus zero is zero');
  refuses(t, setting, [
    '',
    ' 1',
    '1.0',
    '1e3',
    '0x10',
    '010',
    '-6',
    '4294967296',
    '9007199254740993',
    'NaN',
    '1_000',
  ]);
  t.end();
});

t.test('a number is finite and within its range', (t) => {
  const setting = float({ ...common, default: 0.8, min: 0, max: 1 });
  accepts(t, setting, [
    ['0.8', 0.8],
    ['.5', 0.5],
    ['1', 1],
    ['5e-1', 0.5],
  ]);
  refuses(t, setting, ['', '1.1', '-0.1', 'NaN', 'Infinity', '0x1', '0,8', '1e999']);
  t.end();
});

t.test('a port is 0 to 65535', (t) => {
  const setting = port({ ...common, default: 8081 });
  accepts(t, setting, [
    ['0', 0],
    ['65535', 65_535],
  ]);
  refuses(t, setting, ['', '65536', '-1', ':8081', '80.5', 'tcp://10.0.0.1:8081']);
  t.equal(setting.form, 'a TCP port, 0 to 65535');
  t.end();
});

t.test('a duration is parsed to milliseconds within its range, zero or more by default', (t) => {
  const setting = duration({ ...common, default: '10s' });
  t.same(setting.fallback, { value: 10_000, text: '10s' });
  accepts(t, setting, [
    ['1h30m', 5_400_000],
    ['0', 0],
  ]);
  refuses(t, setting, ['', '10', '-1s', '1d']);
  const bounded = duration({ ...common, default: '10s', min: '1s', max: '1h' });
  refuses(t, bounded, ['0', '999ms', '61m']);
  t.equal(bounded.form, 'a duration such as 10ms, 1.5s or 1h30m, 1s to 1h');
  t.throws(() => duration({ ...common, default: '10' }), /X/, 'a bad default is a mistake in the spec');
  t.end();
});

t.test('longestTimer plus a tenth is a valid timer delay', (t) => {
  const setting = duration({ ...common, default: longestTimer, max: longestTimer });
  t.ok(Number(setting.fallback?.value) * 1.1 < 2 ** 31);
  refuses(t, setting, ['481h']);
  t.end();
});

t.test('with clamp, a value out of range is replaced and reported', (t) => {
  const whole = int({ ...common, default: 10, min: 1, max: 1000, clamp: true });
  accepts(t, whole, [
    ['1000', 1000],
    ['1001', 1000],
    ['-5', 1],
  ]);
  refuses(t, whole, ['', 'x', '1.5']);
  t.same(
    [whole.replacement?.('1001'), whole.replacement?.('0'), whole.replacement?.('7')],
    ['1000', '1', undefined],
  );
  t.equal(whole.form, 'an integer, 1 to 1000; others count as the nearest');
  t.same(whole.schema, { type: 'integer' }, 'charts accept what the service does');

  const ratio = float({ ...common, default: 0.5, min: 0, max: 1, clamp: true });
  t.same([ratio.parse('1.5'), ratio.replacement?.('1.5'), ratio.replacement?.('x')], [1, '1', undefined]);

  const time = duration({ ...common, default: '1s', min: '1ms', max: '1h', clamp: true, zeroAs: '10s' });
  accepts(t, time, [
    ['0', 10_000],
    ['1us', 1],
    ['2h', 3_600_000],
  ]);
  refuses(t, time, ['-1s', '5', '']);
  t.same(
    [time.replacement?.('0'), time.replacement?.('2h'), time.replacement?.('5m')],
    ['10s', '1h', undefined],
  );
  t.match(time.form, /1ms to 1h; others count as the nearest, 0 as 10s$/);
  t.equal(int({ ...common, default: 1 }).replacement, undefined);
  t.end();
});

t.test('with bareSeconds, a number without a unit is seconds', (t) => {
  const setting = duration({ ...common, default: '0', max: '1h', bareSeconds: true });
  accepts(t, setting, [
    ['0', 0],
    ['30', 30_000],
    ['30ms', 30],
  ]);
  refuses(t, setting, ['', '-1', '1.5', '3601', 'x']);
  t.equal(setting.form, 'seconds, or a duration such as 10ms, 1.5s or 1h30m, 0s to 1h');
  t.end();
});

t.test('a list is split at commas, trimmed, and without empty items', (t) => {
  const setting = list({ ...common, default: [] });
  accepts(t, setting, [
    ['', []],
    ['a', ['a']],
    [' a, b ,,c:d ', ['a', 'b', 'c:d']],
  ]);
  t.ok(Object.isFrozen(setting.parse('a,b')));
  refuses(t, list({ ...common, required: true }), ['', ' , ']);
  t.end();
});

t.test('pairs are split at the first separator; the last of equal keys wins', (t) => {
  const setting = pairs({ ...common, default: {} });
  accepts(t, setting, [
    ['', {}],
    ['k1:v1,k2:v2', { k1: 'v1', k2: 'v2' }],
    ['authorization:Bearer a:b, x: y ', { authorization: 'Bearer a:b', x: 'y' }],
    ['k:', { k: '' }],
    ['k:1,k:2', { k: '2' }],
  ]);
  refuses(t, setting, ['k', ':v', 'k:v,', 'k=v', ',']);
  const prototype = setting.parse('__proto__:x');
  t.same(Object.entries(prototype ?? {}), [['__proto__', 'x']], 'no key is special');
  accepts(t, pairs({ ...common, default: {}, separator: '=' }), [['a=b:c,d=e', { a: 'b:c', d: 'e' }]]);
  t.end();
});

t.test('a choice is case-insensitive and has the configured spelling', (t) => {
  const setting = oneOf(['single', 'Sentinel'], {
    ...common,
    default: 'single',
    synonyms: { '': 'single', ha: 'Sentinel' },
  });
  accepts(t, setting, [
    ['SINGLE', 'single'],
    ['sentinel', 'Sentinel'],
    ['', 'single'],
    ['HA', 'Sentinel'],
  ]);
  refuses(t, setting, ['cluster', ' single', 'constructor']);
  refuses(t, oneOf(['a'], { ...common, default: 'a' }), ['']);
  t.equal(setting.form, 'one of single, Sentinel');
  t.end();
});

t.test('text is not changed, and refused by a pattern or when required and empty', (t) => {
  accepts(t, text({ ...common, default: 'x' }), [
    ['', ''],
    [' a b ', ' a b '],
  ]);
  refuses(t, text({ ...common, required: true }), ['']);
  const header = text({ ...common, default: 'A', matches: { pattern: /^[\w-]+$/, form: 'a header name' } });
  accepts(t, header, [['X-Limit', 'X-Limit']]);
  refuses(t, header, ['', 'x y']);
  t.end();
});

t.test('every builder has a JSON schema', (t) => {
  t.strictSame(bool({ ...common, default: false }).schema, { type: 'boolean' });
  t.strictSame(port({ ...common, default: 80 }).schema, { type: 'integer', minimum: 0, maximum: 65535 });
  t.strictSame(int({ ...common, default: 1, min: 1 }).schema, { type: 'integer', minimum: 1 });
  t.strictSame(float({ ...common, default: 0, max: 1 }).schema, { type: 'number', maximum: 1 });
  const { pattern = '', ...rest } = duration({ ...common, default: '1s', min: '1s' }).schema;
  t.strictSame(rest, { type: 'string' });
  for (const good of ['0', '1h30m', '.5s', '-1.5ms']) t.match(good, new RegExp(pattern));
  for (const bad of ['', '1', '1 s', '1d', 's', '1.s.']) t.notMatch(bad, new RegExp(pattern), bad);
  const words = oneOf(['warn', 'error'], { ...common, default: 'warn', synonyms: { warning: 'warn' } });
  t.strictSame(words.schema, { type: 'string', enum: ['warn', 'error', 'warning'] });
  t.end();
});
