import t from 'tap';
import { FrameReader, FrameType, frame } from '../src/frames.ts';
import { Budget } from '../src/limits.ts';

const frames: { type: number; flags: number; streamId: number; payload: Buffer }[] = [
  { type: FrameType.SETTINGS, flags: 0, streamId: 0, payload: Buffer.alloc(0) },
  { type: FrameType.HEADERS, flags: 4, streamId: 1, payload: Buffer.from('headers') },
  { type: FrameType.DATA, flags: 1, streamId: 1, payload: Buffer.alloc(16_384, 'd') },
  { type: 0xee, flags: 0xff, streamId: 0x7fff_ffff, payload: Buffer.from('?') },
];
const bytes = Buffer.concat(frames.map((f) => frame(f.type, f.flags, f.streamId, f.payload)));

function readInChunks(sizes: Iterator<number>) {
  const reader = new FrameReader();
  const got: typeof frames = [];
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + sizes.next().value);
    reader.read(bytes.subarray(at, end), (type, flags, streamId, payload) =>
      got.push({ type, flags, streamId, payload }),
    );
    at = end;
  }
  return got;
}

t.test('frames do not depend on how the bytes are split', async (t) => {
  function* constant(size: number) {
    for (;;) yield size;
  }
  for (const size of [1, 2, 8, 9, 10, 1000, 16_392, 1_000_000]) {
    // A payload that is kept must not be overwritten by the bytes that follow.
    t.strictSame(readInChunks(constant(size)), frames, `chunks of ${size} bytes`);
  }
});

t.test('a frame larger than allowed is refused before its payload is buffered', async (t) => {
  const header = Buffer.from([0, 0x40, 1, 0, 0, 0, 0, 0, 1]);
  for (const cut of [9, 5]) {
    const reader = new FrameReader();
    t.throws(
      () => {
        reader.read(header.subarray(0, cut), () => t.fail('a frame'));
        reader.read(header.subarray(cut), () => t.fail('a frame'));
        reader.read(Buffer.alloc(1), () => t.fail('a frame'));
      },
      { name: 'ConnectionError', code: 6 },
    );
  }
});

t.test('a budget refills with time up to its burst', async (t) => {
  const budget = new Budget(2, 10, 0);
  t.strictSame([budget.take(0), budget.take(0), budget.take(0)], [true, true, false]);
  t.strictSame([budget.take(100), budget.take(100)], [true, false]);
  t.strictSame([budget.take(10_000), budget.take(10_000), budget.take(10_000)], [true, true, false]);
  budget.add(1);
  t.ok(budget.take(10_000));
});
