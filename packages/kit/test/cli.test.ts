import t from 'tap';
import { describeFlags, parseFlags } from '../src/cli.ts';

const spec = {
  address: { kind: 'text', value: 'host:port', default: 'localhost:1', doc: 'Where.' },
  entry: { kind: 'list', doc: 'What.' },
  loud: { kind: 'switch', doc: 'How.' },
} as const;

const valuesOf = (...args: string[]) => {
  const parsed = parseFlags(spec, args);
  if (parsed.kind !== 'values') throw new Error(`no values but ${JSON.stringify(parsed)}`);
  return parsed.values;
};
const problemsOf = (...args: string[]) => {
  const parsed = parseFlags(spec, args);
  return parsed.kind === 'wrong' ? parsed.problems : parsed;
};

t.test('without arguments every flag has its default', async (t) => {
  t.strictSame(valuesOf(), { address: 'localhost:1', entry: [], loud: false });
});

t.test('flags are read with one dash or two, with a space or an equals sign', async (t) => {
  for (const args of [['-address', 'a:1'], ['--address', 'a:1'], ['-address=a:1'], ['--address=a:1']]) {
    t.equal(valuesOf(...args).address, 'a:1', args.join(' '));
  }
});

t.test('only the first equals sign ends the name of a flag', async (t) => {
  t.strictSame(valuesOf('-entry=a=b,c=d').entry, ['a=b,c=d']);
});

t.test('the value of a flag may begin with a dash or be empty', async (t) => {
  t.equal(valuesOf('-address', '-x').address, '-x');
  t.equal(valuesOf('-address', '').address, '');
  t.equal(valuesOf('-address=').address, '');
});

t.test('a list keeps all values in order, a text the last', async (t) => {
  t.strictSame(valuesOf('-entry', 'a', '-entry', 'b', '-address=1', '-address=2'), {
    address: '2',
    entry: ['a', 'b'],
    loud: false,
  });
});

t.test(
  'a switch takes no value after a space, and what Go takes for a boolean after an equals sign',
  async (t) => {
    t.equal(valuesOf('-loud', '-address', 'x').loud, true);
    t.equal(valuesOf('-loud=T').loud, true);
    t.equal(valuesOf('-loud', '-loud=0').loud, false);
    t.strictSame(problemsOf('-loud=yes'), ["-loud is true or false, not 'yes'"]);
  },
);

t.test('all problems are reported at once, with the known flags', async (t) => {
  t.strictSame(problemsOf('-nope', 'stray', '-constructor', '-address'), [
    'unknown flag -nope: expected one of -address, -entry, -loud, -help',
    "unexpected argument 'stray'",
    'unknown flag -constructor: expected one of -address, -entry, -loud, -help',
    '-address needs a value',
  ]);
});

t.test('a lone dash, two dashes and a flag without a name are problems', async (t) => {
  t.strictSame(problemsOf('-', '--', '-=x'), [
    "unexpected argument '-'",
    "unexpected argument '--'",
    "unexpected argument '-=x'",
  ]);
});

t.test('-h, -help and --help show help, regardless of other arguments', async (t) => {
  for (const flag of ['-h', '--h', '-help', '--help']) {
    t.strictSame(parseFlags(spec, ['-nope', flag]), { kind: 'help' }, flag);
  }
});

t.test('help shows each flag with its value, doc and default', async (t) => {
  t.equal(
    describeFlags(spec),
    `  -address <host:port>
        Where. (default localhost:1)
  -entry <text>
        What. May be repeated.
  -loud
        How.
`,
  );
});
