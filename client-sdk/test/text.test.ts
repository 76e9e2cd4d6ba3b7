import t from 'tap';
import { quote } from '../src/text.ts';

t.test('an untrusted value is quoted, escaped and cut', (t) => {
  t.equal(quote('a\n"b'), '"a\\n\\"b"');
  t.equal(quote(undefined), 'undefined');
  t.equal(quote(['x', 1]), '["x",1]');
  t.equal(quote('x'.repeat(1000)).length, 201);
  t.end();
});
