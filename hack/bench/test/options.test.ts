import t from 'tap';
import { helpText, parseOptions } from '../options.ts';
import { scenarios, usualScenarios } from '../scenario.ts';

t.test('without arguments the whole bench runs', async (t) => {
  t.same(parseOptions([]), {
    kind: 'run',
    options: {
      scenarios: usualScenarios,
      quick: false,
      json: false,
      write: false,
      profile: false,
      rate: 2000,
      connections: 8,
      streams: 16,
      nodeFlags: [],
    },
  });
});

t.test('--only picks scenarios by name, in their own order', async (t) => {
  const parsed = parseOptions(['--only', 'redis-1-key', '--only', 'memory-1-key', '--quick']);
  t.equal(parsed.kind, 'run');
  if (parsed.kind !== 'run') return;
  t.same(
    parsed.options.scenarios.map(({ name }) => name),
    ['memory-1-key', 'redis-1-key'],
  );
  const byName = parseOptions(['--only', 'cluster-10k-keys']);
  t.equal(byName.kind === 'run' && byName.options.scenarios.length, 1, 'also those that do not run unasked');
  t.notMatch(JSON.stringify(parseOptions([])), 'cluster-10k-keys');
  t.equal(parsed.options.quick, true);
});

t.test('all wrong values are named at once', async (t) => {
  const parsed = parseOptions(['--only', 'nonsense', '--rate', '0', '--streams', '1e2']);
  t.equal(parsed.kind, 'wrong');
  if (parsed.kind !== 'wrong') return;
  t.equal(parsed.problems.length, 3);
  t.match(parsed.problems.join('\n'), /--rate: expected a whole number from 1 to 100000, not '0'/);
  t.match(parsed.problems.join('\n'), /--streams: .* not '1e2'/);
  t.match(parsed.problems.join('\n'), /no scenario 'nonsense'; there are memory-1-key/);
});

t.test('an option that does not exist and a stray word are refused', async (t) => {
  t.match(parseOptions(['--fast']), { kind: 'wrong', problems: [/--fast/] });
  t.match(parseOptions(['memory-1-key']), { kind: 'wrong', problems: [/memory-1-key/] });
});

t.test('the page is written from a whole run only', async (t) => {
  t.equal(parseOptions(['--write']).kind, 'run');
  for (const other of ['--quick', '--profile', '--only=memory-1-key', '--node-flag=--jitless']) {
    t.equal(parseOptions(['--write', other]).kind, 'wrong', other);
  }
});

t.test('the help names every scenario', async (t) => {
  t.equal(parseOptions(['--help']).kind, 'help');
  for (const { name } of scenarios) t.ok(helpText.includes(name), name);
});
