import t from 'tap';
import { parsePageOptions } from '../page-options.ts';

t.test('a page is never written of a run that is cut short', async (t) => {
  t.strictSame(parsePageOptions([]), { kind: 'run', quick: false, write: false });
  t.strictSame(parsePageOptions(['--quick']), { kind: 'run', quick: true, write: false });
  t.strictSame(parsePageOptions(['--quick', '--write']), { kind: 'run', quick: false, write: true });
});

t.test('help comes first, and what is not known is named', async (t) => {
  t.strictSame(parsePageOptions(['--write', '--help']), { kind: 'help' });
  t.match(parsePageOptions(['--fast']), { kind: 'wrong', problem: /--fast/ });
});
