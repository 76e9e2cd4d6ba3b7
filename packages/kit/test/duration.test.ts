import t from 'tap';
import { formatDuration, parseDuration } from '../src/time.ts';

t.test('Go durations are read as milliseconds', (t) => {
  const vectors: readonly (readonly [string, number])[] = [
    ['0', 0],
    ['-0', 0],
    ['+0', 0],
    ['0s', 0],
    ['5s', 5_000],
    ['30m', 1_800_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1_500],
    ['.5s', 500],
    ['5.s', 5_000],
    ['10ms', 10],
    ['2us', 0.002],
    ['2µs', 0.002],
    ['2μs', 0.002],
    ['1ns', 0.000001],
    ['-1.5h', -5_400_000],
    ['1.005s', 1_005],
    ['1h1m1s1ms', 3_661_001],
    ['2562047h47m16.854775807s', 9_223_372_036_854.775],
  ];
  for (const [text, ms] of vectors) t.equal(parseDuration(text), ms, text);
  t.end();
});

t.test('what Go refuses is refused', (t) => {
  const bad = [
    '',
    ' ',
    '10',
    '1 s',
    's',
    '.s',
    '1h30',
    '10S',
    '1d',
    '--1s',
    '1s ',
    '1e3s',
    '2562048h',
    '1ss',
    '٣s',
    '.',
  ];
  for (const text of bad) t.equal(parseDuration(text), undefined, JSON.stringify(text));
  t.equal(parseDuration(`${'9'.repeat(1_000_000)}s`), undefined, 'a million digits');
  t.end();
});

t.test('a written duration is short and reads back as itself', (t) => {
  const vectors: readonly (readonly [number, string])[] = [
    [0, '0s'],
    [86_400_000, '24h'],
    [5_400_000, '1h30m'],
    [1_500, '1.5s'],
    [61_000, '1m1s'],
    [10, '10ms'],
    [1.5, '1.5ms'],
    [0.002, '2µs'],
    [0.000001, '1ns'],
    [-1_000, '-1s'],
  ];
  for (const [ms, text] of vectors) {
    t.equal(formatDuration(ms), text, text);
    t.equal(parseDuration(text), ms, `${text} reads back`);
  }
  t.end();
});
