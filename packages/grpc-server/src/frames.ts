/** Frame types (RFC 9113 §6). */
export const FrameType = {
  DATA: 0x0,
  HEADERS: 0x1,
  PRIORITY: 0x2,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
  CONTINUATION: 0x9,
} as const;

/** Flags of frames; ACK and END_STREAM share a bit. */
export const Flag = { END_STREAM: 0x1, ACK: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

/** Error codes (RFC 9113 §7). */
export const ErrorCode = {
  NO_ERROR: 0x0,
  PROTOCOL_ERROR: 0x1,
  INTERNAL_ERROR: 0x2,
  FLOW_CONTROL_ERROR: 0x3,
  STREAM_CLOSED: 0x5,
  FRAME_SIZE_ERROR: 0x6,
  REFUSED_STREAM: 0x7,
  CANCEL: 0x8,
  COMPRESSION_ERROR: 0x9,
  ENHANCE_YOUR_CALM: 0xb,
} as const;

/** Parameters of SETTINGS (RFC 9113 §6.5.2). */
export const Setting = {
  HEADER_TABLE_SIZE: 0x1,
  ENABLE_PUSH: 0x2,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
  MAX_HEADER_LIST_SIZE: 0x6,
} as const;

/** The first bytes of a client (RFC 9113 §3.4). */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Bytes before the payload of each frame. */
export const frameHeaderBytes = 9;

/**
 * Largest payload that we accept: the default, which every peer knows (SETTINGS_MAX_FRAME_SIZE).
 */
export const maxFrameBytes = 16_384;

/** Flow control of both sides starts with this window (RFC 9113 §6.9.2). */
export const defaultWindowBytes = 65_535;

/** The largest window (RFC 9113 §6.9.1), stream identifier and reserved-bit mask. */
export const maxWindowBytes = 0x7fff_ffff;

/** A violation of the protocol that ends the connection with GOAWAY. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Takes one frame. `payload` is not written to again: it may be kept. */
export type FrameHandler = (type: number, flags: number, streamId: number, payload: Buffer) => void;

const noBytes = Buffer.alloc(0);

/** Cuts the bytes of a connection into frames, without a copy where a chunk has whole frames. */
export class FrameReader {
  /** The header of a frame that is not complete, and how many bytes of it have arrived. */
  readonly #header = Buffer.alloc(frameHeaderBytes);
  #headerBytes = 0;
  /** The payload of a frame whose header is complete, and how many bytes of it have arrived. */
  #payload = noBytes;
  #payloadBytes = 0;

  /** Memory of the frame that is not complete. */
  get heldBytes(): number {
    return this.#payload.length;
  }

  /**
   * Passes all frames that are complete to `handle`.
   *
   * @throws ConnectionError FRAME_SIZE_ERROR when a frame is larger than allowed, before its
   * payload is buffered; what
   *   `handle` throws.
   */
  read(chunk: Buffer, handle: FrameHandler): void {
    let position = this.#headerBytes > 0 ? this.#complete(chunk, handle) : 0;
    while (chunk.length - position >= frameHeaderBytes) {
      const start = position + frameHeaderBytes;
      const end = start + payloadLength(chunk, position);
      if (end > chunk.length) break;
      dispatch(chunk, position, chunk.subarray(start, end), handle);
      position = end;
    }
    if (position < chunk.length) this.#keep(chunk, position);
  }

  /**
   * Adds to the frame that is not complete what it lacks and dispatches it; returns the number of
   * bytes taken.
   */
  #complete(chunk: Buffer, handle: FrameHandler): number {
    const taken = this.#keep(chunk, 0);
    if (this.#headerBytes === frameHeaderBytes && this.#payloadBytes === this.#payload.length) {
      this.#headerBytes = 0;
      const payload = this.#payload;
      this.#payload = noBytes;
      dispatch(this.#header, 0, payload, handle);
    }
    return taken;
  }

  /** Keeps what belongs to one frame; returns how many bytes that was. */
  #keep(chunk: Buffer, start: number): number {
    let position = start;
    if (this.#headerBytes < frameHeaderBytes) {
      const copied = chunk.copy(this.#header, this.#headerBytes, position);
      position += copied;
      this.#headerBytes += copied;
      if (this.#headerBytes < frameHeaderBytes) return position - start;
      this.#payload = Buffer.allocUnsafe(payloadLength(this.#header, 0));
      this.#payloadBytes = 0;
    }
    const copied = chunk.copy(this.#payload, this.#payloadBytes, position);
    this.#payloadBytes += copied;
    return position + copied - start;
  }
}

function dispatch(header: Buffer, at: number, payload: Buffer, handle: FrameHandler): void {
  const streamId = header.readUInt32BE(at + 5) & maxWindowBytes;
  handle(header[at + 3] ?? 0, header[at + 4] ?? 0, streamId, payload);
}

function payloadLength(bytes: Buffer, at: number): number {
  const length = bytes.readUIntBE(at, 3);
  if (length > maxFrameBytes) {
    throw new ConnectionError(
      ErrorCode.FRAME_SIZE_ERROR,
      `frame of ${length} bytes exceeds ${maxFrameBytes}`,
    );
  }
  return length;
}

/** Writes a frame header into `target`; returns the position of the payload. */
export function writeFrameHeader(
  target: Buffer,
  at: number,
  frame: {
    readonly length: number;
    readonly type: number;
    readonly flags: number;
    readonly streamId: number;
  },
): number {
  target.writeUIntBE(frame.length, at, 3);
  target[at + 3] = frame.type;
  target[at + 4] = frame.flags;
  target.writeUInt32BE(frame.streamId, at + 5);
  return at + frameHeaderBytes;
}

/** A complete frame, for rare ones. */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  bytes.set(payload, writeFrameHeader(bytes, 0, { length: payload.length, type, flags, streamId }));
  return bytes;
}

/**
 * A frame whose payload is made of 32-bit numbers: RST_STREAM, WINDOW_UPDATE, GOAWAY without debug
 * data.
 */
export function numberFrame(type: number, streamId: number, ...numbers: readonly number[]): Buffer {
  const payload = Buffer.allocUnsafe(4 * numbers.length);
  numbers.forEach((number, index) => {
    payload.writeUInt32BE(number, 4 * index);
  });
  return frame(type, 0, streamId, payload);
}

/** A SETTINGS frame. */
export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.allocUnsafe(6 * settings.length);
  settings.forEach(([id, value], index) => {
    payload.writeUInt16BE(id, 6 * index);
    payload.writeUInt32BE(value, 6 * index + 2);
  });
  return frame(FrameType.SETTINGS, 0, 0, payload);
}

export function expectStream(streamId: number, what: string): void {
  if (streamId === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `${what} on stream 0`);
}

export function expectConnection(streamId: number, what: string): void {
  if (streamId !== 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `${what} on a stream`);
}

export function expectLength(payload: Buffer, length: number, what: string): void {
  if (payload.length !== length) {
    throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, `${what} of ${payload.length} bytes`);
  }
}

export function unpadData(flags: number, payload: Buffer): Buffer {
  return (flags & Flag.PADDED) === 0 ? payload : unpad(payload);
}

/** RFC 9113 §6.1: the padding has a length that fits the payload. */
function unpad(payload: Buffer): Buffer {
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) {
    throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'padding is longer than its frame');
  }
  return payload.subarray(1, payload.length - padding);
}

/** RFC 9113 §6.2. */
export function unpadHeaders(
  flags: number,
  payload: Buffer,
): { fragment: Buffer; dependency: number | undefined } {
  const content = unpadData(flags, payload);
  if ((flags & Flag.PRIORITY) === 0) return { fragment: content, dependency: undefined };
  if (content.length < 5)
    throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, 'HEADERS without its priority');
  return { fragment: content.subarray(5), dependency: content.readUInt32BE() & maxWindowBytes };
}

/** The settings of a SETTINGS frame, with their ranges checked (RFC 9113 §6.5.2). */
export function* readSettings(payload: Buffer): Generator<readonly [id: number, value: number]> {
  if (payload.length % 6 !== 0) {
    throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, `SETTINGS of ${payload.length} bytes`);
  }
  for (let at = 0; at < payload.length; at += 6) {
    const id = payload.readUInt16BE(at);
    const value = payload.readUInt32BE(at + 2);
    checkSetting(id, value);
    yield [id, value];
  }
}

function checkSetting(id: number, value: number): void {
  if (id === Setting.ENABLE_PUSH && value > 1) {
    throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `ENABLE_PUSH of ${value}`);
  }
  if (id === Setting.MAX_FRAME_SIZE && (value < maxFrameBytes || value > 0xff_ffff)) {
    throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `MAX_FRAME_SIZE of ${value}`);
  }
  if (id === Setting.INITIAL_WINDOW_SIZE && value > maxWindowBytes) {
    throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, `INITIAL_WINDOW_SIZE of ${value}`);
  }
}
