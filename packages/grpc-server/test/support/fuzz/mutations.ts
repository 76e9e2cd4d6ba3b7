import { Flag, FrameType, maxWindowBytes, Setting } from '../../../src/frames.ts';
import type { Random } from './random.ts';
import { joinFrames, type Recording, type SessionFrame } from './recordings.ts';

/** How the client of a case ends. */
type Ending = 'end' | 'reset' | 'leave';

/** One connection: the pieces that its client writes, one for each turn. */
export interface FuzzCase {
  readonly recording: string;
  readonly chunks: readonly Buffer[];
  readonly ending: Ending;
  /** The client does not read while it writes. */
  readonly paused: boolean;
}

type Mutation = (frames: SessionFrame[], random: Random, recordings: readonly Recording[]) => void;

const streamIds = [0, 1, 2, 3, 5, 7, 0x3fff_ffff, 0x7fff_fffd, 0x7fff_ffff, 0x8000_0001, 0xffff_ffff];
const windowIncrements = [0, 1, 100, 65_535, maxWindowBytes - 65_535, maxWindowBytes, 0xffff_ffff];
const settingValues = [0, 1, 2, 100, 16_384, 65_535, 0xff_ffff, maxWindowBytes, 0x8000_0000, 0xffff_ffff];
/** Representations, prefixes and lengths at which HPACK decoders branch (RFC 7541 §5 and §6). */
const hpackBytes = [0x00, 0x0f, 0x10, 0x1f, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0xbe, 0xbf, 0xc0, 0xfe, 0xff];

/** Replaces a random frame by what `change` makes of it. */
function changeOne(
  change: (frame: SessionFrame, random: Random) => SessionFrame,
  matches: (frame: SessionFrame) => boolean = () => true,
): Mutation {
  return (frames, random) => {
    const positions = frames.flatMap((frame, index) => (matches(frame) ? [index] : []));
    if (positions.length === 0) return;
    const at = random.pick(positions);
    const frame = frames[at];
    if (frame !== undefined) frames[at] = change(frame, random);
  };
}

/** A frame with another payload, whose length is correct. */
function withPayload(frame: SessionFrame, payload: Buffer): SessionFrame {
  return { ...frame, payload, length: payload.length };
}

export function flipBits(bytes: Buffer, random: Random): Buffer {
  const flipped = Buffer.from(bytes);
  for (let flips = 1 + random.below(4); flips > 0 && flipped.length > 0; flips--) {
    const at = random.below(flipped.length);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8));
  }
  return flipped;
}

export function replaceBytes(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1);
  const inserted = Buffer.from(Array.from({ length: 1 + random.below(6) }, () => random.pick(hpackBytes)));
  return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + random.below(3))]);
}

function makePayload(type: number, random: Random): Buffer {
  const numbers = (...values: number[]) => {
    const payload = Buffer.alloc(4 * values.length);
    values.forEach((value, index) => {
      payload.writeUInt32BE(value >>> 0, 4 * index);
    });
    return payload;
  };
  if (type === FrameType.WINDOW_UPDATE) return numbers(random.pick(windowIncrements));
  if (type === FrameType.RST_STREAM) return numbers(random.below(16));
  if (type === FrameType.GOAWAY) return numbers(random.pick(streamIds), random.below(16));
  if (type === FrameType.PING) return random.bytes(8);
  if (type === FrameType.PRIORITY) return Buffer.concat([numbers(random.pick(streamIds)), random.bytes(1)]);
  if (type === FrameType.SETTINGS) {
    const payload = Buffer.alloc(6);
    payload.writeUInt16BE(random.pick([...Object.values(Setting), 0, 0xffff]), 0);
    payload.writeUInt32BE(random.pick(settingValues), 2);
    return payload;
  }
  return random.bytes(random.below(40));
}

function insertFrames(frames: SessionFrame[], random: Random): void {
  const at = random.below(frames.length + 1);
  const type = random.chance(0.9) ? random.below(10) : random.below(256);
  const payload = makePayload(type, random);
  const flags = random.pick([0, 0, Flag.END_STREAM, Flag.END_HEADERS, 0xff]);
  const streamId = random.chance(0.5) ? (frames[at]?.streamId ?? 0) : random.pick(streamIds);
  // Many of them are a flood.
  const count = random.chance(0.05) ? 300 : 1;
  const frame = { length: payload.length, type, flags, streamId, payload };
  frames.splice(at, 0, ...Array.from({ length: count }, () => frame));
}

/** Appends the requests of a session with identifiers above those used before. */
function appendSession(frames: SessionFrame[], random: Random, recordings: readonly Recording[]): void {
  const last = Math.max(0, ...frames.map(({ streamId }) => streamId & maxWindowBytes));
  const offset = last + (last % 2) + (random.chance(0.05) ? 1 : 0);
  if (offset > 0x7000_0000) return;
  for (const frame of random.pick(recordings).frames) {
    if (frame.streamId !== 0) frames.push({ ...frame, streamId: frame.streamId + offset });
  }
}

function splitHeaders(frames: SessionFrame[], random: Random): void {
  const at = frames.findIndex(({ type }) => type === FrameType.HEADERS);
  const frame = frames[at];
  if (frame === undefined) return;
  const cut = random.below(frame.payload.length + 1);
  const rest = {
    ...withPayload(frame, frame.payload.subarray(cut)),
    type: FrameType.CONTINUATION,
    flags: Flag.END_HEADERS,
  };
  const empty = { ...withPayload(rest, Buffer.alloc(0)), flags: 0 };
  const between = Array.from({ length: random.chance(0.1) ? 20 : random.below(3) }, () => empty);
  const first = {
    ...withPayload(frame, frame.payload.subarray(0, cut)),
    flags: frame.flags & ~Flag.END_HEADERS,
  };
  frames.splice(at, 1, first, ...between, rest);
}

const isHeaders = ({ type }: SessionFrame) => type === FrameType.HEADERS || type === FrameType.CONTINUATION;
const isData = ({ type }: SessionFrame) => type === FrameType.DATA;

const mutations: readonly Mutation[] = [
  changeOne((frame, random) => withPayload(frame, flipBits(frame.payload, random))),
  changeOne((frame, random) =>
    withPayload(frame, frame.payload.subarray(0, random.below(frame.payload.length + 1))),
  ),
  changeOne((frame, random) => ({
    ...frame,
    length: random.pick([0, 1, 9, frame.length + 1, 16_384, 16_385]),
  })),
  changeOne((frame, random) => ({ ...frame, type: random.below(12) })),
  changeOne((frame, random) => ({ ...frame, flags: frame.flags ^ (1 << random.below(8)) })),
  changeOne((frame, random) => ({ ...frame, streamId: random.pick(streamIds) })),
  changeOne((frame, random) => ({ ...frame, streamId: frame.streamId + random.pick([-2, -1, 1, 2]) })),
  changeOne((frame, random) => withPayload(frame, replaceBytes(frame.payload, random)), isHeaders),
  changeOne((frame, random) => withPayload(frame, flipBits(frame.payload, random)), isHeaders),
  // The flag and the length of a gRPC message.
  changeOne((frame, random) => {
    const payload = Buffer.from(frame.payload);
    if (payload.length >= 5) payload[random.below(5)] = random.pick([0, 1, 2, 0x7f, 0xff]);
    return withPayload(frame, payload);
  }, isData),
  changeOne((frame, random) => withPayload(frame, Buffer.alloc(random.pick([0, 5, 16_000, 16_384]))), isData),
  (frames, random) => {
    const at = random.below(frames.length);
    const copied = frames.slice(at, at + 1 + random.below(4));
    frames.splice(random.below(frames.length + 1), 0, ...copied);
  },
  (frames, random) => {
    const [a, b] = [random.below(frames.length), random.below(frames.length)];
    const [first, second] = [frames[a], frames[b]];
    if (first === undefined || second === undefined) return;
    frames[a] = second;
    frames[b] = first;
  },
  (frames, random) => void frames.splice(random.below(frames.length), 1 + random.below(2)),
  insertFrames,
  insertFrames,
  appendSession,
  appendSession,
  splitHeaders,
];

/** A case: a recorded session with a few changes, cut into pieces. */
export function makeCase(recordings: readonly Recording[], random: Random): FuzzCase {
  const recording = random.pick(recordings);
  const frames = [...recording.frames];
  for (let count = random.below(6); count > 0; count--) random.pick(mutations)(frames, random, recordings);
  let bytes = joinFrames(frames);
  if (random.chance(0.1)) bytes = flipBits(bytes, random);
  if (random.chance(0.1)) bytes = bytes.subarray(0, random.below(bytes.length + 1));
  return {
    recording: recording.name,
    chunks: cut(bytes, random),
    ending: random.pick(['end', 'end', 'reset', 'leave'] as const),
    paused: random.chance(0.1),
  };
}

/** Cuts bytes into pieces: one, of random sizes, or of one byte each. */
function cut(bytes: Buffer, random: Random): Buffer[] {
  const largest = random.pick([bytes.length, bytes.length, 1000, 64, bytes.length < 600 ? 1 : 16]);
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + (largest === bytes.length ? largest : 1 + random.below(largest));
    chunks.push(bytes.subarray(at, end));
    at = end;
  }
  return chunks;
}
