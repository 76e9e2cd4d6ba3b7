import assert from 'node:assert/strict';
import { awaitPass, awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';

t.test('the result of the last attempt is returned', async (t) => {
  let calls = 0;
  t.equal(await awaitUntil(() => (++calls === 3 ? 'there' : undefined), { what: 'the third call' }), 'there');
  t.equal(calls, 3);
});

t.test('an attempt that throws is repeated', async (t) => {
  let calls = 0;
  await awaitPass(() => assert.equal(++calls, 2), { what: 'two calls' });
  t.equal(calls, 2);
});

t.test('a timeout names the condition and the last error', async (t) => {
  const waiting = awaitPass(() => assert.fail('still red'), {
    what: 'a green light',
    timeoutMs: 20,
    everyMs: 1,
  });
  await t.rejects(waiting, {
    message: 'waited 20 ms in vain for a green light: still red',
    cause: { message: 'still red' },
  });
});
