import type { Methods } from './call.ts';
import type { RequestHead } from './request-head.ts';
import { Code, GrpcStatus } from './status.ts';

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
