/**
 * Frame types that matter to a client of unary calls.
 *
 * @see RFC 9113 §6 https://www.rfc-editor.org/rfc/rfc9113#section-6
 */
export const frameType = {
  data: 0x0,
  headers: 0x1,
  resetStream: 0x3,
  settings: 0x4,
  ping: 0x6,
  goAway: 0x7,
  windowUpdate: 0x8,
  continuation: 0x9,
} as const;

/** Flags of frames; `ack` is that of SETTINGS and PING. */
export const frameFlag = { ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

/** Parameters of a SETTINGS frame (RFC 9113 §6.5.2). */
export const settingsParameter = {
  headerTableSize: 0x1,
  enablePush: 0x2,
  maxConcurrentStreams: 0x3,
  initialWindowSize: 0x4,
} as const;

/** Bytes before the payload of a frame. */
export const frameHeaderBytes = 9;

/** What a client sends before its first frame (RFC 9113 §3.4). */
export const clientPreface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Builds one frame. */
export function encodeFrame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(frameHeaderBytes);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, payload]);
}

/** Builds a WINDOW_UPDATE frame: the peer may send `bytes` more on the stream, or on the whole connection when it is 0. */
export function encodeWindowUpdate(streamId: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return encodeFrame(frameType.windowUpdate, 0, streamId, payload);
}

/** Builds a SETTINGS frame from pairs of parameter and value. */
export function encodeSettings(settings: readonly (readonly [parameter: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(settings.length * 6);
  settings.forEach(([parameter, value], i) => {
    payload.writeUInt16BE(parameter, i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  });
  return encodeFrame(frameType.settings, 0, 0, payload);
}

/** Reads the payload of a SETTINGS frame: parameter to value. */
export function decodeSettings(payload: Buffer): Map<number, number> {
  const settings = new Map<number, number>();
  for (let at = 0; at + 6 <= payload.length; at += 6) {
    settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  }
  return settings;
}
