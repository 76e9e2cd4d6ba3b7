import t from 'tap';
import { clientText } from '../../src/domain/client-text.ts';

t.test('text of a client is cut, and shows what would not be seen', async (t) => {
  t.equal(clientText('first: größe\nsecond: 限', 100), 'first: größe\nsecond: 限');
  t.equal(clientText('a\u001b[2J\r\u0000b', 100), 'a\\u001b[2J\\u000d\\u0000b');
  t.equal(clientText('\u202egnp\u200b.exe\u2028', 100), '\\u202egnp\\u200b.exe\\u2028');
  t.equal(clientText('\u0000'.repeat(50), 20).length, 20);
  t.equal(clientText('a😀b', 2), 'a\ufffd');
});
