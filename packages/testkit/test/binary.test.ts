import { findBinary } from '@tollgate/testkit/binary';
import t from 'tap';

t.test('a program on PATH is found', async (t) => {
  t.match(findBinary('sh'), /\/sh$/);
});

t.test('a program that is nowhere is reported with the way to get it', async (t) => {
  t.throws(() => findBinary('no-such-program'), {
    message: 'no-such-program is not installed: run hack/setup.sh test',
  });
});
