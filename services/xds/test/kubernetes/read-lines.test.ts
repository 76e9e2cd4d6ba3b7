import t from 'tap';
import { readLines } from '../../src/kubernetes/read-lines.ts';

/** Yields the chunks, and notes whether the reader has let go of them. */
function streamOf(...chunks: (string | Uint8Array)[]) {
  const state: { taken: number; ended: boolean } = { taken: 0, ended: false };
  async function* generate(): AsyncGenerator<Uint8Array> {
    try {
      for (const chunk of chunks) {
        state.taken += 1;
        yield Buffer.from(chunk);
      }
    } finally {
      state.ended = true;
    }
  }
  return { chunks: generate(), state };
}

async function linesOf(...chunks: (string | Uint8Array)[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of readLines(streamOf(...chunks).chunks, 100)) lines.push(line);
  return lines;
}

t.test('lines are the same however they are cut into chunks', async (t) => {
  const text = 'one\n\nthree\nvier: ä\n';
  const expected = ['one', '', 'three', 'vier: ä'];
  t.strictSame(await linesOf(text), expected);
  t.strictSame(await linesOf(...Array.from(Buffer.from(text), (byte) => Buffer.of(byte))), expected);
});

t.test('what has no end is no line', async (t) => {
  t.strictSame(await linesOf('one\ntw'), ['one']);
  t.strictSame(await linesOf(), []);
});

t.test('a line of the largest size is read, one byte more is an error', async (t) => {
  t.strictSame(await linesOf('x'.repeat(100), '\n'), ['x'.repeat(100)]);
  await t.rejects(linesOf('x'.repeat(60), 'x'.repeat(41)), { message: 'a line of more than 100 bytes' });
});

t.test('whoever stops reading lets go of the stream, which is read no further', async (t) => {
  const { chunks, state } = streamOf('one\ntwo\n', 'three\n', 'four\n');
  for await (const line of readLines(chunks, 100)) {
    if (line === 'two') break;
  }
  t.strictSame(state, { taken: 1, ended: true });
});
