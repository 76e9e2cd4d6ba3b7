import { gunzipSync } from 'node:zlib';
import type { Methods } from './call.ts';
import { fieldOverheadBytes, type HeaderField } from './hpack/static-table.ts';
import { Code, GrpcStatus } from './status.ts';

/** Bytes before each gRPC message: a flag and the length. */
export const messagePrefixBytes = 5;

/**
 * The header fields of a request, validated as HTTP/2 and read as gRPC. Shared by requests with
 * equal header blocks.
 */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  /** `grpc-encoding`; `identity` when absent. */
  readonly encoding: string;
  /** Value of `grpc-timeout` in milliseconds; infinite when absent, undefined when malformed. */
  readonly timeoutMs: number | undefined;
  /** Value of `content-length`; undefined when absent. */
  readonly contentLength: number | undefined;
  /** All regular fields in their order, names in lower case, values as latin1. */
  readonly fields: readonly HeaderField[];
  /** Size of the header list (RFC 9113 §6.5.2). */
  readonly bytes: number;
}

/** RFC 9110 §5.1 (a token), without upper case (RFC 9113 §8.2). */
const validName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/** RFC 9113 §8.2.1: no NUL, CR or LF, no whitespace at either end. */
const invalidValue = /[\0\r\n]|^[\t ]|[\t ]$/;

const connectionSpecific = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'],
]);

const pseudoNames = new Set([':method', ':path', ':scheme', ':authority']);

/**
 * Validates the fields of a request.
 *
 * @returns the reason as a string when the request is malformed (RFC 9113 §8.1.1): a stream error.
 */
export function readRequestHead(list: readonly HeaderField[]): RequestHead | string {
  const pseudo = new Map<string, string>();
  const fields: HeaderField[] = [];
  let bytes = 0;
  for (const field of list) {
    const [name, value] = field;
    bytes += name.length + value.length + fieldOverheadBytes;
    if (name.startsWith(':')) {
      if (!pseudoNames.has(name)) return `unknown pseudo-header ${name.slice(0, 20)}`;
      if (fields.length > 0) return 'pseudo-header after a regular field';
      if (pseudo.has(name)) return `duplicate ${name}`;
      pseudo.set(name, value);
    } else {
      const problem = fieldProblem(name, value);
      if (problem !== undefined) return problem;
      fields.push(field);
    }
  }
  const method = pseudo.get(':method');
  const path = pseudo.get(':path');
  if (method === undefined || path === undefined || path === '' || !pseudo.has(':scheme')) {
    return 'missing pseudo-header';
  }
  const value = (name: string) => fields.find((field) => field[0] === name)?.[1];
  const length = value('content-length');
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return 'invalid content-length';
  return {
    method,
    path,
    contentType: value('content-type') ?? '',
    encoding: value('grpc-encoding') ?? 'identity',
    timeoutMs: readTimeout(value('grpc-timeout')),
    contentLength: length === undefined ? undefined : Number(length),
    fields,
    bytes,
  };
}

/** Validates trailers; returns what is wrong with them. */
export function trailerProblem(list: readonly HeaderField[]): string | undefined {
  for (const [name, value] of list) {
    if (name.startsWith(':')) return 'pseudo-header in trailers';
    const problem = fieldProblem(name, value);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function fieldProblem(name: string, value: string): string | undefined {
  if (!validName.test(name)) return 'invalid field name';
  if (invalidValue.test(value)) return `invalid value of ${name.slice(0, 40)}`;
  if (connectionSpecific.has(name)) return `connection-specific field ${name}`;
  if (name === 'te' && value !== 'trailers') return 'te other than trailers';
  return undefined;
}

const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** The `grpc-timeout` header: at most eight digits and a unit. */
function readTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  const factor = unitsMs[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

/** Replaces a header list that exceeds the limit. */
export const oversizedHead: RequestHead = {
  method: '',
  path: '',
  contentType: '',
  encoding: 'identity',
  timeoutMs: Number.POSITIVE_INFINITY,
  contentLength: undefined,
  fields: [],
  bytes: 0,
};

/** A reply to a request that is not gRPC. */
export interface PlainReply {
  readonly httpStatus: number;
  readonly text: string;
}

/** Reply to a request that is not a call of a method of this server. */
export type Refusal = GrpcStatus | PlainReply;

/**
 * Why a request is not passed to a handler; undefined when it is.
 *
 * @param head undefined for a header list that exceeds the limit.
 * @param peerRefusal why the peer of the connection is refused.
 */
export function findRefusal(
  head: RequestHead | undefined,
  methods: Methods,
  peerRefusal: string | undefined,
): Refusal | undefined {
  if (head === undefined) return { httpStatus: 431, text: 'request header fields too large\n' };
  const { method, contentType, encoding, timeoutMs, path } = head;
  if (method !== 'POST') return { httpStatus: 405, text: 'this port serves gRPC: only POST is allowed\n' };
  if (contentType !== 'application/grpc' && !/^application\/grpc[+;]/.test(contentType)) {
    return { httpStatus: 415, text: 'this port serves gRPC: content-type must be application/grpc\n' };
  }
  if (peerRefusal !== undefined) return new GrpcStatus(Code.UNAUTHENTICATED, peerRefusal);
  if (timeoutMs === undefined) return new GrpcStatus(Code.INTERNAL, 'invalid grpc-timeout');
  if (encoding !== 'identity' && encoding !== 'gzip') {
    return new GrpcStatus(Code.UNIMPLEMENTED, `grpc-encoding ${encoding.slice(0, 40)} is not supported`);
  }
  if (!Object.hasOwn(methods.unary, path) && !Object.hasOwn(methods.streaming ?? {}, path)) {
    return new GrpcStatus(Code.UNIMPLEMENTED, `unknown method ${path.slice(0, 200)}`);
  }
  return undefined;
}

/**
 * Reads the one message of a unary request from the body of its stream.
 *
 * @returns the message's bytes, a view of `body` unless it was compressed, or the status that the
 * call ends with.
 */
export function readRequestMessage(
  body: Buffer,
  { encoding, maxBytes }: { readonly encoding: string; readonly maxBytes: number },
): Buffer | GrpcStatus {
  if (body.length < messagePrefixBytes)
    return new GrpcStatus(Code.INTERNAL, 'request has no complete message');
  const length = body.readUInt32BE(1);
  if (length > maxBytes) return tooLarge(maxBytes);
  const end = messagePrefixBytes + length;
  if (body.length < end) return new GrpcStatus(Code.INTERNAL, 'request has no complete message');
  if (body.length > end) {
    return new GrpcStatus(Code.UNIMPLEMENTED, 'a unary request has exactly one message');
  }
  const message = body.subarray(messagePrefixBytes, end);
  const compressed = body[0] ?? 0;
  if (compressed === 0) return message;
  if (compressed !== 1) return new GrpcStatus(Code.INTERNAL, `invalid compressed flag ${compressed}`);
  if (encoding !== 'gzip') {
    return new GrpcStatus(Code.INTERNAL, 'compressed flag is set, but grpc-encoding names no compression');
  }
  return decompress(message, maxBytes);
}

function decompress(message: Buffer, maxBytes: number): Buffer | GrpcStatus {
  try {
    // The bound ends a decompression bomb before it takes memory.
    return gunzipSync(message, { maxOutputLength: maxBytes });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ERR_BUFFER_TOO_LARGE') return tooLarge(maxBytes);
    return new GrpcStatus(Code.INTERNAL, 'the message is not valid gzip');
  }
}

/** The status of a request that exceeds the bound on messages. */
export function tooLarge(maxBytes: number): GrpcStatus {
  return new GrpcStatus(Code.RESOURCE_EXHAUSTED, `request message exceeds ${maxBytes} bytes`);
}
