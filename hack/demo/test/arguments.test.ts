import t from 'tap';
import { parseArguments } from '../arguments.ts';

t.test('without arguments the demo stays up', async (t) => {
  t.same(parseArguments([]), { ok: true, help: false, once: false });
});

t.test('--once ends it after the table', async (t) => {
  t.match(parseArguments(['--once']), { ok: true, once: true });
});

t.test('--help and -h ask for help', async (t) => {
  t.match(parseArguments(['--help']), { ok: true, help: true });
  t.match(parseArguments(['-h', '--once']), { ok: true, help: true });
});

t.test('an unknown flag is answered with the known ones', async (t) => {
  t.same(parseArguments(['--twice']), {
    ok: false,
    problem: "Unknown option '--twice'. The flags are --once and --help.",
  });
});

t.test(
  'a word that is no flag, and a value for a flag that takes none, are answered with the flags',
  async (t) => {
    t.match(parseArguments(['once']), { ok: false, problem: /'once'.* The flags are --once and --help\.$/ });
    t.match(parseArguments(['--once=no']), {
      ok: false,
      problem: /'--once'.* The flags are --once and --help\.$/,
    });
  },
);
