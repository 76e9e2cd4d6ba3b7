import type { Socket } from 'node:net';
import { frameHeaderBytes } from '@tollgate/grpc-server/frames';

/** Collects frames and writes them to the socket at once: a system call a batch, not a system call a frame. */
export interface OutputBuffer {
  /** Appends a ready frame. */
  add(frame: Buffer): void;
  /** Appends a ready frame with its stream id replaced. */
  addForStream(frame: Buffer, streamId: number): void;
  /** Writes what was collected. */
  flush(): void;
}

/** A batch beyond this is written in parts. */
const batchBytes = 64 * 1024;

/** Where the stream id is within a frame's header. */
const streamIdAt = frameHeaderBytes - 4;

/** Creates the output side of a connection. Frames must be smaller than 64 KiB. */
export function createOutputBuffer(socket: Socket): OutputBuffer {
  let batch = Buffer.allocUnsafeSlow(batchBytes);
  let used = 0;

  const flush = (): void => {
    if (used === 0) return;
    socket.write(batch.subarray(0, used));
    // Whatever the kernel did not take at once is still being read from this buffer.
    if (socket.writableLength > 0) batch = Buffer.allocUnsafeSlow(batchBytes);
    used = 0;
  };
  const add = (frame: Buffer): void => {
    if (used + frame.length > batchBytes) flush();
    used += frame.copy(batch, used);
  };

  return {
    add,
    addForStream(frame, streamId) {
      add(frame);
      batch.writeUInt32BE(streamId, used - frame.length + streamIdAt);
    },
    flush,
  };
}
