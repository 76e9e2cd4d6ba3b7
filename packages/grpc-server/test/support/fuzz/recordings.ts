import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { FrameReader, preface } from '../../../src/frames.ts';

/** A frame of a session; `length` differs from that of the payload once it has been damaged. */
export interface SessionFrame {
  readonly length: number;
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Bytes of a real client on one connection, without the preface. */
export interface Recording {
  readonly name: string;
  readonly frames: readonly SessionFrame[];
}

export const recordingsFolder = join(import.meta.dirname, 'testdata');

/** The recorded sessions, in the order of their names. `record-main.ts` writes them. */
export function readRecordings(): Recording[] {
  return globSync('*.bin', { cwd: recordingsFolder })
    .sort()
    .map((file) => ({
      name: basename(file, '.bin'),
      frames: splitFrames(readFileSync(join(recordingsFolder, file))),
    }));
}

/** @throws Error when the bytes do not begin with the preface of HTTP/2. */
export function splitFrames(bytes: Buffer): SessionFrame[] {
  if (!bytes.subarray(0, preface.length).equals(preface)) throw new Error('no HTTP/2 preface');
  const frames: SessionFrame[] = [];
  new FrameReader().read(bytes.subarray(preface.length), (type, flags, streamId, payload) =>
    frames.push({ length: payload.length, type, flags, streamId, payload }),
  );
  return frames;
}

/** The bytes of frames, with the length that each of them claims. */
export function joinFrames(frames: readonly SessionFrame[]): Buffer {
  return Buffer.concat([
    preface,
    ...frames.flatMap(({ length, type, flags, streamId, payload }) => {
      const header = Buffer.alloc(9);
      header.writeUIntBE(length & 0xff_ffff, 0, 3);
      header[3] = type;
      header[4] = flags;
      header.writeUInt32BE(streamId >>> 0, 5);
      return [header, payload];
    }),
  ]);
}
