import { frameHeaderBytes } from './frames.ts';

/** Called for each frame; the payload is only valid during the call. */
export type OnFrame = (type: number, flags: number, streamId: number, payload: Buffer) => void;

/** Larger than a peer may send unless it was asked to (RFC 9113 §4.2). */
const maxFrameBytes = 16_384;

/**
 * Creates a function that takes the bytes of a connection as they arrive and calls `onFrame` for each whole frame.
 * It throws an Error when a frame is larger than HTTP/2 allows.
 */
export function createFrameReader(onFrame: OnFrame): (chunk: Buffer) => void {
  let rest: Buffer | undefined;
  return (chunk) => {
    const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (at + frameHeaderBytes <= bytes.length) {
      const length = bytes.readUIntBE(at, 3);
      if (length > maxFrameBytes) throw new Error(`the server sent a frame of ${length} bytes`);
      const payloadAt = at + frameHeaderBytes;
      if (payloadAt + length > bytes.length) break;
      const streamId = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
      onFrame(
        bytes[at + 3] ?? 0,
        bytes[at + 4] ?? 0,
        streamId,
        bytes.subarray(payloadAt, payloadAt + length),
      );
      at = payloadAt + length;
    }
    rest = at === bytes.length ? undefined : bytes.subarray(at);
  };
}
