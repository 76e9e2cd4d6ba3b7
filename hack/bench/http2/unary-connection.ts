import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  defaultWindowBytes,
  Flag,
  type FrameHandler,
  FrameReader,
  FrameType,
  frame,
  frameHeaderBytes,
  numberFrame,
  preface,
  Setting,
  settingsFrame,
} from '@tollgate/grpc-server/frames';
import { headerTableBytes } from '@tollgate/grpc-server/hpack/decoder';
import { type AnswerFields, createHeaderDecoder } from './header-decoder.ts';
import { createOutputBuffer } from './output-buffer.ts';
import { encodeRequestHeaders } from './request-headers.ts';

/** How one call ended. */
export interface Answer {
  /** `0` when the call succeeded; `none` without one; `reset <code>` when the server dropped the stream. */
  readonly grpcStatus: string;
  /** Percent-encoded; empty without one. */
  readonly grpcMessage: string;
  /** The message with gRPC's five bytes before it; empty when none came. */
  readonly body: Buffer;
}

/** Where to connect and what to call there. */
export interface UnaryConnectionOptions {
  host: string;
  port: number;
  /** The gRPC method, such as `/package.Service/Method`. */
  path: string;
  /** How many calls there will be in flight at most. */
  maxInFlight: number;
  /** Called for each call that ended, with the number it was sent under. May send more; they go out together. */
  onAnswer: (token: number, answer: Answer) => void;
  /** Called once when the connection breaks or ends before `close()`. */
  onBroken: (error: Error) => void;
}

/** An HTTP/2 connection that does nothing but unary gRPC calls with the same headers. */
export interface UnaryConnection {
  readonly inFlight: number;
  /** Queues a call. `dataFrame` comes from `encodeCall`; `token` is handed back with the answer. */
  send(token: number, dataFrame: Buffer): void;
  /** Writes queued calls. Not needed within `onAnswer`. */
  flush(): void;
  /** Ends the connection at once. Idempotent. */
  close(): void;
}

/** The server may send this much before it needs leave to send more: beyond what any run receives within a second. */
const receiveWindowBytes = 2 ** 30;

const connectTimeoutMs = 5000;

/** Puts a serialized message into the DATA frame of a call (gRPC's length prefix included), ready to be sent many times. */
export function encodeCall(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return frame(FrameType.DATA, Flag.END_STREAM, 0, Buffer.concat([prefix, message]));
}

interface OpenCall {
  readonly token: number;
  body: Buffer;
}

/**
 * Opens a connection without TLS and waits for the server's settings.
 *
 * Written by hand because the client shares two cores with the server under test: a call costs it a tenth of what
 * node:http2 costs.
 *
 * @throws Error when nothing listens there, or the server's settings allow less than this client needs.
 * @see RFC 9113 https://www.rfc-editor.org/rfc/rfc9113
 * @see gRPC over HTTP/2 https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
export async function openUnaryConnection(options: UnaryConnectionOptions): Promise<UnaryConnection> {
  const { host, port, maxInFlight, onAnswer } = options;
  const socket = connect({ host, port, noDelay: true });
  await connected(socket);

  const output = createOutputBuffer(socket);
  const headers = createHeaderDecoder();
  const blocks = encodeRequestHeaders({ path: options.path, authority: `${host}:${port}` });
  const headersFlags = Flag.END_HEADERS;
  const firstHeaders = frame(FrameType.HEADERS, headersFlags, 0, blocks.first);
  const laterHeaders = frame(FrameType.HEADERS, headersFlags, 0, blocks.later);

  const calls = new Map<number, OpenCall>();
  const waiting: { token: number; dataFrame: Buffer }[] = [];
  let nextStreamId = 1;
  let sendWindowBytes = defaultWindowBytes;
  let receivedBytes = 0;
  let unfinishedBlock: { flags: number; bytes: Buffer } | undefined;
  let ended = false;
  const { promise: ready, resolve: becomeReady, reject: failReady } = Promise.withResolvers<void>();

  const close = (): void => {
    ended = true;
    socket.destroy();
  };
  const breakOff = (error: Error): void => {
    if (ended) return;
    close();
    failReady(error);
    options.onBroken(error);
  };

  const start = (token: number, dataFrame: Buffer): void => {
    output.addForStream(nextStreamId === 1 ? firstHeaders : laterHeaders, nextStreamId);
    output.addForStream(dataFrame, nextStreamId);
    calls.set(nextStreamId, { token, body: noBytes });
    nextStreamId += 2;
    sendWindowBytes -= dataFrame.length - frameHeaderBytes;
  };
  const mayStart = (dataFrame: Buffer): boolean => dataFrame.length - frameHeaderBytes <= sendWindowBytes;
  const startWaiting = (): void => {
    for (let call = waiting[0]; call !== undefined && mayStart(call.dataFrame); call = waiting[0]) {
      waiting.shift();
      start(call.token, call.dataFrame);
    }
  };

  const finish = (streamId: number, fields: Pick<Answer, 'grpcStatus' | 'grpcMessage'>): void => {
    const call = calls.get(streamId);
    if (call === undefined) return;
    calls.delete(streamId);
    onAnswer(call.token, { ...fields, body: call.body });
  };
  const onHeaderBlock = (streamId: number, flags: number, block: Buffer): void => {
    // Decoded in any case: the block may change the table that later ones refer to.
    const fields = headers.decode(block);
    if (flags & Flag.END_STREAM) finish(streamId, statusOf(fields));
  };
  const onHeaders = (streamId: number, flags: number, block: Buffer): void => {
    if (flags & Flag.END_HEADERS) onHeaderBlock(streamId, flags, block);
    else unfinishedBlock = { flags, bytes: Buffer.from(block) };
  };
  const onContinuation = (streamId: number, flags: number, block: Buffer): void => {
    if (unfinishedBlock === undefined) throw new Error('the server sent a CONTINUATION frame out of order');
    unfinishedBlock.bytes = Buffer.concat([unfinishedBlock.bytes, block]);
    if (!(flags & Flag.END_HEADERS)) return;
    const whole = unfinishedBlock;
    unfinishedBlock = undefined;
    onHeaderBlock(streamId, whole.flags, whole.bytes);
  };
  const onData = (streamId: number, flags: number, payload: Buffer): void => {
    receivedBytes += payload.length;
    if (receivedBytes > receiveWindowBytes / 2) {
      output.add(numberFrame(FrameType.WINDOW_UPDATE, 0, receivedBytes));
      receivedBytes = 0;
    }
    const call = calls.get(streamId);
    const bytes = withoutPadding(payload, flags);
    if (call !== undefined) call.body = call.body.length === 0 ? bytes : Buffer.concat([call.body, bytes]);
    if (flags & Flag.END_STREAM) finish(streamId, statusOf({}));
  };
  const onSettings = (flags: number, payload: Buffer): void => {
    if (flags & Flag.ACK) return;
    const problem = settingsProblem(decodeSettings(payload), maxInFlight);
    if (problem !== undefined) throw new Error(problem);
    output.add(frame(FrameType.SETTINGS, Flag.ACK, 0, noBytes));
    becomeReady();
  };

  const reader = new FrameReader();
  const onFrame: FrameHandler = (type, flags, streamId, payload) => {
    switch (type) {
      case FrameType.DATA:
        return onData(streamId, flags, payload);
      case FrameType.HEADERS:
        return onHeaders(streamId, flags, withoutPriority(withoutPadding(payload, flags), flags));
      case FrameType.CONTINUATION:
        return onContinuation(streamId, flags, payload);
      case FrameType.SETTINGS:
        return onSettings(flags, payload);
      case FrameType.WINDOW_UPDATE:
        // Requests are far smaller than a stream's own window: only that of the connection runs out.
        if (streamId === 0) sendWindowBytes += payload.readUInt32BE();
        return startWaiting();
      case FrameType.PING:
        if (!(flags & Flag.ACK)) output.add(frame(FrameType.PING, Flag.ACK, 0, Buffer.from(payload)));
        return;
      case FrameType.RST_STREAM:
        return finish(streamId, { grpcStatus: `reset ${payload.readUInt32BE()}`, grpcMessage: '' });
      case FrameType.GOAWAY:
        throw new Error(`the server ended the connection (GOAWAY ${payload.readUInt32BE(4)})`);
    }
  };
  socket.on('data', (chunk: Buffer) => {
    if (ended) return;
    try {
      reader.read(chunk, onFrame);
      output.flush();
    } catch (error) {
      breakOff(error instanceof Error ? error : new Error(String(error)));
    }
  });
  socket.on('error', breakOff);
  socket.on('close', () => breakOff(new Error('the server closed the connection')));

  output.add(preface);
  output.add(settingsFrame([[Setting.ENABLE_PUSH, 0]]));
  output.add(numberFrame(FrameType.WINDOW_UPDATE, 0, receiveWindowBytes - defaultWindowBytes));
  output.flush();
  await ready;

  return {
    get inFlight() {
      return calls.size + waiting.length;
    },
    send(token, dataFrame) {
      if (waiting.length === 0 && mayStart(dataFrame)) start(token, dataFrame);
      else waiting.push({ token, dataFrame });
    },
    flush: () => output.flush(),
    close,
  };
}

const noBytes = Buffer.alloc(0);

async function connected(socket: Socket): Promise<void> {
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(connectTimeoutMs) });
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function statusOf({ httpStatus, grpcStatus, grpcMessage = '' }: AnswerFields) {
  const missing = httpStatus === undefined || httpStatus === '200' ? 'none' : `HTTP ${httpStatus}`;
  return { grpcStatus: grpcStatus ?? missing, grpcMessage };
}

function settingsProblem(settings: Map<number, number>, maxInFlight: number): string | undefined {
  const maxStreams = settings.get(Setting.MAX_CONCURRENT_STREAMS) ?? Number.POSITIVE_INFINITY;
  if (maxStreams < maxInFlight)
    return `the server allows ${maxStreams} streams a connection, not ${maxInFlight}`;
  const tableBytes = settings.get(Setting.HEADER_TABLE_SIZE) ?? headerTableBytes;
  if (tableBytes < headerTableBytes)
    return `the server keeps a header table of ${tableBytes} bytes: too small`;
  return undefined;
}

/** The payload of a SETTINGS frame: parameter to value. */
function decodeSettings(payload: Buffer): Map<number, number> {
  const settings = new Map<number, number>();
  for (let at = 0; at + 6 <= payload.length; at += 6) {
    settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  }
  return settings;
}

function withoutPadding(payload: Buffer, flags: number): Buffer {
  if (!(flags & Flag.PADDED)) return payload;
  return payload.subarray(1, payload.length - (payload[0] ?? 0));
}

function withoutPriority(payload: Buffer, flags: number): Buffer {
  return flags & Flag.PRIORITY ? payload.subarray(5) : payload;
}
