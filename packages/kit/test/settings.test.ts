import {
  bool,
  defineSettings,
  duration,
  findMisspelled,
  formatSettingProblems,
  int,
  list,
  oneOf,
  pairs,
  parseSettings,
  port,
  renderSettingsTable,
  type SettingValues,
  text,
} from '@tollgate/kit/settings';
import t from 'tap';

const common = { group: 'G', doc: 'D' };
const spec = defineSettings({
  grpcPort: port({ ...common, env: 'GRPC_PORT', default: 8081 }),
  redisUrl: text({ ...common, env: 'KVSTORE_URL', aliases: ['REDIS_URL'], default: 'localhost:6379' }),
  redisAuth: text({ ...common, env: 'KVSTORE_AUTH', aliases: ['REDIS_AUTH'], secret: true, default: '' }),
  redisType: oneOf(['single', 'cluster'], { ...common, env: 'KVSTORE_TYPE', default: 'single' }),
  poolSize: int({ ...common, env: 'KVSTORE_POOL_SIZE', default: 10, min: 1 }),
  pinCode: int({ ...common, env: 'PIN_CODE', default: 0, secret: true }),
  push: bool({ ...common, env: 'USE_PUSHSTATS', aliases: ['USE_STATSD'], default: true }),
  pull: bool({ ...common, env: 'USE_PULLMETRICS', default: false }),
  flushIntervalMs: duration({ ...common, env: 'STATS_FLUSH_INTERVAL', default: '10s' }),
  tags: pairs({ ...common, env: 'EXTRA_TAGS', default: {} }),
  nodes: list({ ...common, env: 'NODES', default: ['a', 'b'] }),
});

function problemsOf(
  env: Record<string, string>,
): readonly { variable: string; value?: string; expected: string }[] {
  const parsed = parseSettings(spec, env);
  return parsed.ok ? [] : parsed.problems;
}

t.test('unset variables have their defaults, in a frozen object', (t) => {
  const parsed = parseSettings(spec, { UNKNOWN: 'ignored', GRPC_PORT: undefined });
  t.ok(parsed.ok);
  if (!parsed.ok) return t.end();
  const settings: SettingValues<typeof spec> = parsed.settings;
  t.same(
    { ...settings },
    {
      grpcPort: 8081,
      redisUrl: 'localhost:6379',
      redisAuth: '',
      redisType: 'single',
      poolSize: 10,
      pinCode: 0,
      push: true,
      pull: false,
      flushIntervalMs: 10_000,
      tags: {},
      nodes: ['a', 'b'],
    },
  );
  t.ok(Object.isFrozen(settings) && Object.isFrozen(settings.tags) && Object.isFrozen(settings.nodes));
  return t.end();
});

t.test('a value is typed by its builder', (t) => {
  const parsed = parseSettings(spec, {
    KVSTORE_TYPE: 'CLUSTER',
    STATS_FLUSH_INTERVAL: '1m',
    REDIS_URL: 'h:1',
  });
  t.ok(parsed.ok);
  if (!parsed.ok) return t.end();
  const kind: 'single' | 'cluster' = parsed.settings.redisType;
  t.equal(kind, 'cluster');
  t.equal(parsed.settings.flushIntervalMs, 60_000);
  t.equal(parsed.settings.redisUrl, 'h:1', 'through its alias');
  return t.end();
});

t.test('all problems are reported at once, with the name that is set', (t) => {
  const problems = problemsOf({
    GRPC_PORT: 'abc',
    USE_STATSD: 'yes',
    STATS_FLUSH_INTERVAL: '10',
    KVSTORE_POOL_SIZE: '0',
  });
  t.same(problems, [
    { variable: 'GRPC_PORT', value: '"abc"', expected: 'a TCP port, 0 to 65535' },
    { variable: 'KVSTORE_POOL_SIZE', value: '"0"', expected: 'an integer, 1 or more' },
    { variable: 'USE_STATSD', value: '"yes"', expected: 'a boolean: true, t, 1, false, f or 0' },
    { variable: 'STATS_FLUSH_INTERVAL', value: '"10"', expected: 'a duration such as 10ms, 1.5s or 1h30m' },
  ]);
  t.end();
});

t.test('an empty boolean, number or duration is invalid', (t) => {
  const env = {
    USE_PUSHSTATS: '',
    KVSTORE_POOL_SIZE: '',
    STATS_FLUSH_INTERVAL: '',
    EXTRA_TAGS: '',
    KVSTORE_URL: '',
    NODES: '',
  };
  t.same(
    problemsOf(env).map((problem) => problem.variable),
    ['KVSTORE_POOL_SIZE', 'USE_PUSHSTATS', 'STATS_FLUSH_INTERVAL'],
  );
  t.end();
});

t.test('a list of commas alone is invalid', (t) => {
  t.same(problemsOf({ NODES: ' ,, ' }), [
    { variable: 'NODES', value: '" ,, "', expected: 'a comma-separated list' },
  ]);
  t.end();
});

t.test('two names of one setting must have the same value', (t) => {
  t.same(problemsOf({ KVSTORE_URL: 'h:1', REDIS_URL: 'h:1' }), []);
  t.same(problemsOf({ KVSTORE_URL: 'redis://u:p@h:1', REDIS_URL: 'h:2' }), [
    {
      variable: 'KVSTORE_URL and REDIS_URL',
      value: '"redis://***@h:1" and "h:2"',
      expected: 'the same value in both, or only one of them set: they are two names of one setting',
    },
  ]);
  t.end();
});

t.test('secrets, credentials in URLs and long values are not shown', (t) => {
  const text = formatSettingProblems(
    problemsOf({
      PIN_CODE: 'hunter2',
      KVSTORE_AUTH: 'hunter3',
      REDIS_AUTH: 'hunter4',
      GRPC_PORT: 'tcp://u:hunter5@h:1',
      KVSTORE_TYPE: 'x'.repeat(10_000),
    }),
  );
  t.notMatch(text, /hunter/);
  t.match(text, /PIN_CODE is \(hidden\)/);
  t.ok(text.length < 1_000, `${text.length} characters`);
  t.end();
});

t.test('a setting without a default is required', (t) => {
  const required = defineSettings({
    secret: text({ ...common, env: 'JWT_SECRET', required: true, secret: true }),
  });
  const unset = parseSettings(required, {});
  t.same(unset, {
    ok: false,
    problems: [{ variable: 'JWT_SECRET', expected: 'text that is not empty; it must be set' }],
  });
  t.equal(parseSettings(required, { JWT_SECRET: '' }).ok, false);
  t.equal(parseSettings(required, { JWT_SECRET: 'x' }).ok, true);
  t.end();
});

t.test('checks read several settings, and name the variable that is set', (t) => {
  const parsed = parseSettings(
    spec,
    { USE_STATSD: 'true', USE_PULLMETRICS: 'true' },
    {
      checks: [
        (settings, { variableName }) =>
          settings.push && settings.pull
            ? {
                variable: `${variableName('push')}, ${variableName('pull')}`,
                expected: 'at most one of them true',
              }
            : undefined,
      ],
    },
  );
  t.same(parsed, {
    ok: false,
    problems: [{ variable: 'USE_STATSD, USE_PULLMETRICS', expected: 'at most one of them true' }],
  });
  t.end();
});

t.test('a check can show a value without secrets', (t) => {
  const spec = defineSettings({
    url: text({ env: 'URL', group: 'g', default: '', doc: 'd' }),
    key: text({ env: 'KEY', group: 'g', default: '', doc: 'd', secret: true }),
    unset: text({ env: 'UNSET', group: 'g', default: 'x', doc: 'd' }),
  });
  const shown: unknown[] = [];
  parseSettings(
    spec,
    { URL: 'redis://u:p@host', KEY: 'k' },
    {
      checks: [
        (_, { problem }) => {
          for (const key of ['url', 'key', 'unset'] as const) shown.push(problem(key, 'e').value);
          return undefined;
        },
      ],
    },
  );
  t.strictSame(shown, ['"redis://***@host"', '(hidden)', undefined]);
  t.end();
});

t.test('a check of an invalid setting is skipped, others run', (t) => {
  const parsed = parseSettings(
    spec,
    { USE_PULLMETRICS: 'maybe', GRPC_PORT: '0' },
    {
      checks: [
        (settings) => (settings.pull ? undefined : { variable: 'USE_PULLMETRICS', expected: 'never asked' }),
        (settings) =>
          settings.grpcPort === 0 ? { variable: 'GRPC_PORT', expected: 'a fixed port' } : undefined,
      ],
    },
  );
  t.same(parsed.ok ? [] : parsed.problems.map((problem) => problem.variable), [
    'USE_PULLMETRICS',
    'GRPC_PORT',
  ]);
  t.throws(
    () => parseSettings(spec, {}, { checks: [() => JSON.parse('{')] }),
    SyntaxError,
    'an exception in a check is thrown',
  );
  t.end();
});

t.test('two settings of one variable throw', (t) => {
  const one = text({ ...common, env: 'A', default: '' });
  const two = text({ ...common, env: 'B', aliases: ['A'], default: '' });
  t.throws(() => defineSettings({ one, two }), /A.*one, two/);
  t.end();
});

t.test('problems are formatted one per line', (t) => {
  t.equal(
    formatSettingProblems([
      { variable: 'A', value: '"x"', expected: 'a boolean' },
      { variable: 'B', expected: 'text' },
    ]),
    '2 settings are wrong:\n  A is "x": expected a boolean\n  B is not set: expected text',
  );
  t.match(formatSettingProblems([{ variable: 'A', expected: 'x' }]), /^1 setting is wrong:/);
  t.end();
});

const make = (env: string, ...aliases: string[]) => text({ env, aliases, group: 'G', doc: 'D', default: '' });
const misspelledSpec = defineSettings({
  host: make('HOST'),
  port: make('PORT'),
  url: make('KVSTORE_URL', 'REDIS_URL'),
  flush: make('STATS_FLUSH_INTERVAL'),
});

t.test('a variable one or two edits from a known one is reported with it', (t) => {
  const env = { STATS_FLUSH_INTERVALL: '1s', STATS_FLUSH_INTEVRAL: '1s', REDIS_URI: 'h', kvstore_url: 'h' };
  t.same(findMisspelled(misspelledSpec, env, ['REDIS_']), [
    { variable: 'STATS_FLUSH_INTERVALL', meant: 'STATS_FLUSH_INTERVAL' },
    { variable: 'STATS_FLUSH_INTEVRAL', meant: 'STATS_FLUSH_INTERVAL' },
    { variable: 'REDIS_URI', meant: 'REDIS_URL' },
    { variable: 'kvstore_url', meant: 'KVSTORE_URL' },
  ]);
  t.end();
});

t.test('known variables and those of other programs are not reported', (t) => {
  const env = {
    PATH: '/bin',
    HOME: '/root',
    HOSTS: 'x',
    REDIS_URL: 'h',
    REDIS_PORT: 'tcp://10.0.0.1',
    LANG: 'C',
  };
  t.same(findMisspelled(misspelledSpec, env, ['REDIS_', 'KVSTORE_']), []);
  t.end();
});

t.test('a short name is reported only with a known prefix', (t) => {
  const short = defineSettings({ tls: make('MC_TLS') });
  t.same(findMisspelled(short, { MC_TSL: 'x' }), []);
  t.same(findMisspelled(short, { MC_TSL: 'x' }, ['MC_']), [{ variable: 'MC_TSL', meant: 'MC_TLS' }]);
  t.end();
});

t.test('a spec is rendered as one table per group, without secrets', (t) => {
  const spec = defineSettings({
    flush: duration({ env: 'FLUSH', group: 'Statistics', default: '10s', doc: 'How often a|b is\nsent.' }),
    auth: text({
      env: 'AUTH',
      aliases: ['REDIS_AUTH'],
      group: 'Cache',
      secret: true,
      default: 'hunter2',
      doc: 'Password.',
    }),
    key: text({ env: 'KEY', group: 'Cache', required: true, doc: 'Signs.' }),
    off: bool({ env: 'OFF', group: 'Statistics', default: false, doc: 'Turns it off.' }),
    prefix: text({ env: 'PREFIX', group: 'Cache', default: '', doc: 'Goes first.' }),
  });
  t.equal(
    renderSettingsTable(spec),
    `## Statistics

| Variable | Also read as | Default | Meaning | Form |
| --- | --- | --- | --- | --- |
| \`FLUSH\` |  | \`10s\` | How often a\\|b is sent. | a duration such as 10ms, 1.5s or 1h30m |
| \`OFF\` |  | \`false\` | Turns it off. | a boolean: true, t, 1, false, f or 0 |

## Cache

| Variable | Also read as | Default | Meaning | Form |
| --- | --- | --- | --- | --- |
| \`AUTH\` | \`REDIS_AUTH\` | (hidden) | Password. Secret: never printed. | text |
| \`KEY\` |  | required | Signs. | text that is not empty |
| \`PREFIX\` |  | empty | Goes first. | text |
`,
  );
  t.end();
});
