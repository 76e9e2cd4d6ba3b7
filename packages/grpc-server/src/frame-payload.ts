import { ConnectionError, ErrorCode, Flag, maxFrameBytes, maxWindowBytes, Setting } from './frames.ts';

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
