import t from 'tap';
import { meantName } from '../src/spelling.ts';

t.test('names that differ in case, separators and a few letters are meant', (t) => {
  const known = ['id', 'aud', 'role', 'email', 'ban_duration', 'user_metadata'];
  t.equal(meantName('banDuration', known), 'ban_duration');
  t.equal(meantName('ban_durations', known), 'ban_duration');
  t.equal(meantName('rol', known), 'role');
  t.equal(meantName('ID', known), 'id');
  t.equal(meantName('if', known), undefined, 'short names are close to unrelated ones');
  t.equal(meantName('data', known), undefined);
  t.equal(meantName('ban_time', known), undefined);
  t.end();
});
