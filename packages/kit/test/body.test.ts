import { Readable } from 'node:stream';
import t from 'tap';
import { readBody } from '../src/body.ts';

const tooLarge = (): Error => new Error('too large');

/** A stream of these texts that reports how many were read. */
function stream(...texts: readonly string[]) {
  let read = 0;
  function* chunks() {
    for (const text of texts) {
      read += 1;
      yield Buffer.from(text);
    }
  }
  return { body: Readable.from(chunks(), { highWaterMark: 1 }), read: () => read };
}

t.test('a body of at most the limit is read whole', async (t) => {
  t.equal(String(await readBody(stream('ab', 'c').body, 3, tooLarge)), 'abc');
  t.equal(String(await readBody(new Response('abc').body, 3, tooLarge)), 'abc');
  t.equal(String(await readBody(null, 3, tooLarge)), '');
});

t.test('a larger body is rejected, and the rest is not read', async (t) => {
  const { body, read } = stream('ab', 'cd', 'ef', 'gh', 'ij');
  await t.rejects(readBody(body, 3, tooLarge), { message: 'too large' });
  t.ok(read() < 5, `${read()} of 5 chunks were read`);
  t.ok(body.destroyed);
});
