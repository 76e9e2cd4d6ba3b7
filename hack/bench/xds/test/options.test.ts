import t from 'tap';
import { parseXdsOptions, parts } from '../options.ts';

t.test('without arguments everything is measured', async (t) => {
  t.strictSame(parseXdsOptions([]), {
    kind: 'run',
    options: { parts, quick: false, write: false, nodeFlags: [] },
  });
});

t.test('--only picks parts, in their own order', async (t) => {
  const parsed = parseXdsOptions(['--only', 'burst', '--only', 'edits', '--quick']);
  t.match(parsed, { kind: 'run', options: { parts: ['edits', 'burst'], quick: true } });
});

t.test('a part that does not exist is named with those that do', async (t) => {
  t.match(parseXdsOptions(['--only', 'speed']), {
    kind: 'wrong',
    problem: /no part 'speed'; there are edits, /,
  });
});

t.test('the page is written of the whole bench only', async (t) => {
  for (const args of [['--quick'], ['--only', 'edits'], ['--node-flag=--cpu-prof']])
    t.match(parseXdsOptions(['--write', ...args]), { kind: 'wrong', problem: /^--write: / });
});

t.test('unknown arguments are refused, and --help comes before everything', async (t) => {
  t.match(parseXdsOptions(['--fast']), { kind: 'wrong', problem: /--fast/ });
  t.strictSame(parseXdsOptions(['--help', '--write']), { kind: 'help' });
});
