import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { ClientBuffers } from '../../../src/client-buffers.ts';
import { Connection } from '../../../src/connection.ts';
import { ConnectionError, FrameReader } from '../../../src/frames.ts';
import { HeaderBlocks } from '../../../src/header-blocks.ts';
import { HpackDecoder } from '../../../src/hpack/decoder.ts';
import { encodeHeaders } from '../../../src/hpack/encoder.ts';
import { decodeHuffman } from '../../../src/hpack/huffman.ts';
import type { HeaderField } from '../../../src/hpack/static-table.ts';
import { defaultLimits } from '../../../src/limits.ts';
import { FlushQueue } from '../../../src/output.ts';
import { readRequestHead, readRequestMessage, trailerProblem } from '../../../src/request.ts';
import { Code, encodeMessage, GrpcStatus } from '../../../src/status.ts';
import { fuzzMethods } from './methods.ts';
import { type FuzzCase, flipBits, makeCase, replaceBytes } from './mutations.ts';
import type { Random } from './random.ts';
import { type Recording, splitFrames } from './recordings.ts';
import { ReplyChecker } from './reply-checker.ts';

/** Fails with what it says when its input is handled wrongly. */
export type ModuleCheck = (random: Random, recordings: readonly Recording[]) => void;

/** Fuzzes modules without a socket, and compares two ways to the same result. */
export const moduleChecks: Readonly<Record<string, ModuleCheck>> = {
  'frames do not depend on how the bytes are split': checkFrames,
  'a header block decodes to bounded fields or fails': checkDecoder,
  'encoded fields decode to themselves': checkEncoder,
  'a repeated header block means the same as a new one': checkHeaderBlocks,
  'a request head is valid or malformed': checkRequestHead,
  'a message is read or refused': checkMessage,
  'replies do not depend on how the request is split': checkConnection,
};

function assert(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new Error(problem);
}

function readFrames(chunks: readonly Buffer[]): string {
  const reader = new FrameReader();
  let result = '';
  try {
    for (const chunk of chunks) {
      reader.read(chunk, (type, flags, streamId, payload) => {
        result += `${type} ${flags} ${streamId} ${payload.toString('latin1')}\n`;
      });
    }
  } catch (error) {
    assert(error instanceof ConnectionError, `threw ${error}`);
    result += error.message;
  }
  return result;
}

function checkFrames(random: Random, recordings: readonly Recording[]): void {
  const { chunks } = makeCase(recordings, random);
  const bytes = Buffer.concat(chunks);
  const whole = readFrames([bytes]);
  const at = random.below(bytes.length + 1);
  assert(readFrames(chunks) === whole, 'split as in the case');
  assert(readFrames([bytes.subarray(0, at), bytes.subarray(at)]) === whole, `split at ${at}`);
}

/** The header blocks of a session, each damaged or not. */
function makeBlocks(random: Random, recordings: readonly Recording[]): Buffer[] {
  const damage = random.pick([0, 0.05, 0.5]);
  return random.pick(recordings).frames.flatMap(({ type, flags, payload }) => {
    // Priority and padding are not HPACK; what remains of them is damage, too.
    if (type !== 1) return [];
    const block = (flags & 0x20) !== 0 ? payload.subarray(5) : payload;
    if (!random.chance(damage)) return [block];
    return [random.pick([flipBits, replaceBytes, () => random.bytes(random.below(50))])(block, random)];
  });
}

/** Fields or their absence; the text of an error. */
function tryDecode(decoder: HpackDecoder, block: Buffer): HeaderField[] | undefined | string {
  try {
    return decoder.decode(block);
  } catch (error) {
    assert(error instanceof Error && error.constructor === Error, `threw ${error}`);
    return error.message;
  }
}

function checkDecoder(random: Random, recordings: readonly Recording[]): void {
  const bound = random.pick([100, 2_000, 16_384]);
  const decoder = new HpackDecoder(bound);
  for (const block of makeBlocks(random, recordings)) {
    const fields = tryDecode(decoder, block);
    if (typeof fields === 'string') return;
    const size = fields?.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0) ?? 0;
    assert(size <= bound, `fields of ${size} bytes exceed ${bound}`);
  }
  tryDecode(decoder, random.bytes(random.below(100)));
  try {
    decodeHuffman(random.bytes(random.below(30)));
  } catch (error) {
    assert(error instanceof Error && error.message.startsWith('Huffman'), `threw ${error}`);
  }
}

function randomText(random: Random): string {
  return random.bytes(random.below(random.pick([3, 40, 300]))).toString('latin1');
}

function randomFields(random: Random): HeaderField[] {
  const names = [':path', ':method', ':scheme', 'te', 'grpc-timeout', 'content-length', 'cookie', 'x'];
  return Array.from({ length: random.below(8) }, () => [
    random.chance(0.7) ? random.pick(names) : randomText(random),
    random.chance(0.5)
      ? random.pick(['', 'trailers', 'POST', '/a.B/C', '1S', '12', '99999999H', '-1'])
      : randomText(random),
  ]);
}

function checkEncoder(random: Random): void {
  const fields = randomFields(random);
  const decoded = new HpackDecoder(1_000_000).decode(encodeHeaders(fields));
  assert(JSON.stringify(decoded) === JSON.stringify(fields), 'other fields');
  const message = `${randomText(random)}\ud800ä`;
  assert(/^[ -~]*$/.test(encodeMessage(message)), 'grpc-message is not ASCII');
}

/** With and without the heads that are remembered, over the same dynamic table. */
function checkHeaderBlocks(random: Random, recordings: readonly Recording[]): void {
  const blocks = makeBlocks(random, recordings).flatMap((block) =>
    random.chance(0.3) ? [block, block] : [block],
  );
  const remembering = new HeaderBlocks(defaultLimits);
  const decoder = new HpackDecoder(defaultLimits.maxHeaderListBytes);
  for (const block of blocks) {
    const fields = tryDecode(decoder, block);
    remembering.begin(1, block, { endStream: true, selfDependent: false });
    let head: ReturnType<HeaderBlocks['readRequest']>;
    try {
      head = remembering.readRequest();
    } catch (error) {
      assert(error instanceof ConnectionError && typeof fields === 'string', `threw ${error}`);
      return;
    }
    assert(typeof fields !== 'string', 'a malformed block was read');
    const expected = fields && readRequestHead(fields);
    assert(JSON.stringify(head) === JSON.stringify(expected), 'another request');
  }
}

function checkRequestHead(random: Random): void {
  const fields = randomFields(random);
  const head = readRequestHead(random.chance(0.5) ? fields : [...validHead, ...fields]);
  trailerProblem(fields);
  if (typeof head === 'string') return;
  const { timeoutMs, contentLength } = head;
  assert(timeoutMs === undefined || timeoutMs >= 0, `timeout ${timeoutMs}`);
  assert(contentLength === undefined || Number.isSafeInteger(contentLength), `length ${contentLength}`);
  for (const [name, value] of head.fields) {
    assert(/^[!-9;-@[-~]+$/.test(name) && !/[\0\r\n]/.test(value), `field ${name}`);
  }
}

const validHead: readonly HeaderField[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a.B/C'],
];

function checkMessage(random: Random, recordings: readonly Recording[]): void {
  const bodies = random.pick(recordings).frames.flatMap(({ type, payload }) => (type === 0 ? [payload] : []));
  const body =
    bodies.length === 0 || random.chance(0.2) ? random.bytes(random.below(40)) : random.pick(bodies);
  const damaged = random.chance(0.7) ? random.pick([flipBits, replaceBytes])(body, random) : body;
  const maxBytes = random.pick([0, 10, 1_000, 1_000_000]);
  const result = readRequestMessage(damaged, { encoding: random.pick(['gzip', 'identity']), maxBytes });
  const { INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED } = Code;
  if (result instanceof GrpcStatus) {
    const isExpected = [INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED].some((code) => code === result.code);
    assert(isExpected, `status ${result.code}`);
  } else assert(result.length <= maxBytes, `${result.length} bytes exceed ${maxBytes}`);
}

/** Only handlers that reply at once: replies of others depend on time. */
const immediate = Object.fromEntries(
  ['Call', 'Large', 'Status', 'Throws'].flatMap((name) => {
    const handler = fuzzMethods[`/test.Echo/${name}`];
    return handler === undefined ? [] : [[`/test.Echo/${name}`, handler]];
  }),
);

/** All that a connection sends in reply to these bytes. */
function reply(chunks: readonly Buffer[]): Buffer {
  const sent: Buffer[] = [];
  const stream = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      sent.push(Buffer.from(chunk));
      done();
    },
  });
  const flushQueue = new FlushQueue();
  // The part of a socket that a connection uses.
  new Connection(
    stream as unknown as Socket,
    {
      limits: { ...defaultLimits, maxConcurrentStreams: 4, overheadBurst: 100, overheadPerSecond: 0 },
      buffers: new ClientBuffers(),
      methods: { unary: immediate },
      flushQueue,
      toStatus: () => new GrpcStatus(Code.INTERNAL, 'failed'),
      refusal: () => undefined,
      onViolation: () => undefined,
      onInternalError: (error) => {
        throw error;
      },
    },
    { address: '', certificate: undefined },
  );
  flushQueue.flush();
  for (const chunk of chunks) {
    stream.emit('data', Buffer.from(chunk));
    flushQueue.flush();
  }
  stream.destroy();
  return Buffer.concat(sent);
}

function checkConnection(random: Random, recordings: readonly Recording[]): void {
  const { chunks }: FuzzCase = makeCase(recordings, random);
  const bytes = Buffer.concat(chunks);
  const whole = reply([bytes]);
  const checker = new ReplyChecker();
  checker.read(whole);
  assert(checker.problem === undefined, `invalid reply: ${checker.problem}`);
  assert(reply(chunks).equals(whole), 'split as in the case');
  const at = random.below(bytes.length + 1);
  assert(reply([bytes.subarray(0, at), bytes.subarray(at)]).equals(whole), `split at ${at}`);
}

/** Sessions up to this length are split in two at every byte. */
const maxHalvedBytes = 1_200;
/** Length of the pieces of longer sessions. Prime, so that no session repeats with it. */
const pieceBytes = 61;

/**
 * Splits a session at every byte: a short one in two, a longer one in pieces that begin later each
 * time, and both in single bytes.
 *
 * @throws Error when the replies differ.
 */
export function checkEverySplit(bytes: Buffer): void {
  splitFrames(bytes);
  const whole = reply([bytes]);
  const length = bytes.length <= maxHalvedBytes ? bytes.length : pieceBytes;
  for (let first = 1; first <= length; first++) {
    assert(reply(cut(bytes, { first, length })).equals(whole), `split at ${first}, then every ${length}`);
  }
  assert(reply(cut(bytes, { first: 1, length: 1 })).equals(whole), 'single bytes');
}

function cut(bytes: Buffer, { first, length }: { first: number; length: number }): Buffer[] {
  const pieces = [bytes.subarray(0, first)];
  for (let at = first; at < bytes.length; at += length) pieces.push(bytes.subarray(at, at + length));
  return pieces;
}
