import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from '@tollgate/proto/grpc/health/v1/health';
import type { Methods } from './call.ts';
import { Code, GrpcStatus } from './status.ts';

/** The serving state of a service, as grpc.health.v1 names it. */
export const ServingStatus = { SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 } as const;

/** Where the state comes from. */
export interface HealthSource {
  /** One of `ServingStatus`; SERVICE_UNKNOWN for a service that this server does not have. */
  status(service: string): number;
  /** Calls `changed` after each change, until the function that it returns is called. */
  onChange(changed: () => void): () => void;
}

/**
 * The methods of grpc.health.v1.Health.
 *
 * @see https://github.com/grpc/grpc/blob/master/doc/health-checking.md
 */
export function healthMethods(source: HealthSource): Required<Methods> {
  return {
    unary: { '/grpc.health.v1.Health/Check': (request) => checkHealth(source, request) },
    streaming: {
      '/grpc.health.v1.Health/Watch': (request, replies, call) => {
        const unsubscribe = watchHealth(source, request, replies.send);
        call.signal.addEventListener('abort', unsubscribe, { once: true });
      },
    },
  };
}

/** The reply to Check. */
export function checkHealth(source: HealthSource, request: Uint8Array): Uint8Array | GrpcStatus {
  const service = readService(request);
  if (service === undefined)
    return new GrpcStatus(Code.INVALID_ARGUMENT, 'the request is not a HealthCheckRequest');
  const status = source.status(service);
  if (status === ServingStatus.SERVICE_UNKNOWN) return new GrpcStatus(Code.NOT_FOUND, 'unknown service');
  return writeStatus(status);
}

/**
 * Sends the replies to Watch: the state now and each other one, until the returned function is
 * called.
 */
export function watchHealth(
  source: HealthSource,
  request: Uint8Array,
  send: (reply: Uint8Array) => void,
): () => void {
  const service = readService(request) ?? unreadable;
  let last: number | undefined;
  const sendChange = () => {
    const status = source.status(service);
    if (status !== last) send(writeStatus(status));
    last = status;
  };
  sendChange();
  return source.onChange(sendChange);
}

/** Stands for the service of a request that cannot be read: no service has that name. */
const unreadable = '\u0000';

function readService(request: Uint8Array): string | undefined {
  try {
    return fromBinary(HealthCheckRequestSchema, request).service;
  } catch {
    return undefined;
  }
}

function writeStatus(status: number): Uint8Array {
  return toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status }));
}
