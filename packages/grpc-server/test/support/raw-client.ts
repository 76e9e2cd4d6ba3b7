import { connect, type Socket } from 'node:net';
import { Flag, FrameReader, FrameType, frame, preface, settingsFrame } from '../../src/frames.ts';
import { encodeHeaders } from '../../src/hpack/encoder.ts';

/** A frame as it was received. */
export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** A client that sends whatever bytes a test wants. */
export class RawClient {
  readonly socket: Socket;
  readonly frames: ReceivedFrame[] = [];
  closed = false;
  #waiters: (() => void)[] = [];

  constructor(port: number) {
    const reader = new FrameReader();
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (chunk: Buffer) => {
      reader.read(chunk, (type, flags, streamId, payload) =>
        this.frames.push({ type, flags, streamId, payload }),
      );
      this.#wake();
    });
    this.socket.on('error', () => undefined);
    this.socket.once('close', () => {
      this.closed = true;
      this.#wake();
    });
  }

  /** Sends the preface and SETTINGS. */
  open(settings: readonly (readonly [number, number])[] = []): void {
    this.send(preface, settingsFrame(settings));
  }

  send(...parts: readonly Uint8Array[]): void {
    this.socket.write(Buffer.concat(parts));
  }

  /** A whole unary request. */
  call(streamId: number, path: string, message: Uint8Array = Buffer.alloc(0)): void {
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.length, 1);
    this.send(
      headersFrame(streamId, { path }),
      frame(FrameType.DATA, Flag.END_STREAM, streamId, Buffer.concat([prefix, message])),
    );
  }

  /** Resolves with the first frame that matches, or undefined when the connection ends first. */
  async receive(matches: (frame: ReceivedFrame) => boolean): Promise<ReceivedFrame | undefined> {
    for (;;) {
      const found = this.frames.find(matches);
      if (found !== undefined || this.closed) return found;
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Resolves when the server has closed the connection. */
  async end(): Promise<void> {
    while (!this.closed) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** The code of GOAWAY that the server ends the connection with. */
  async goaway(): Promise<number | undefined> {
    const received = await this.receive(({ type }) => type === FrameType.GOAWAY);
    return received?.payload.readUInt32BE(4);
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}

/** HEADERS of a gRPC request. */
export function headersFrame(
  streamId: number,
  {
    path = '/test.Echo/Call',
    flags = Flag.END_HEADERS as number,
    extra = [] as (readonly [string, string])[],
  } = {},
): Buffer {
  const block = encodeHeaders([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    ['content-type', 'application/grpc'],
    ...extra,
  ]);
  return frame(FrameType.HEADERS, flags, streamId, block);
}
