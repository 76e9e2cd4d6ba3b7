import type { Call, Methods, ReplyStream } from './call.ts';
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
    unary: {
      '/grpc.health.v1.Health/Check': (request) => {
        const service = readService(request);
        if (service === undefined) return new GrpcStatus(Code.INVALID_ARGUMENT, 'not a HealthCheckRequest');
        const status = source.status(service);
        if (status === ServingStatus.SERVICE_UNKNOWN)
          return new GrpcStatus(Code.NOT_FOUND, 'unknown service');
        return writeStatus(status);
      },
    },
    streaming: {
      '/grpc.health.v1.Health/Watch': (request, replies, call) => watch(source, request, { replies, call }),
    },
  };
}

function watch(
  source: HealthSource,
  request: Uint8Array,
  { replies, call }: { readonly replies: ReplyStream; readonly call: Call },
): void {
  const service = readService(request);
  if (service === undefined) {
    replies.end(new GrpcStatus(Code.INVALID_ARGUMENT, 'not a HealthCheckRequest'));
    return;
  }
  let last: number | undefined;
  const send = () => {
    const status = source.status(service);
    if (status !== last) replies.send(writeStatus(status));
    last = status;
  };
  send();
  call.signal.addEventListener('abort', source.onChange(send), { once: true });
}

/** HealthCheckRequest: `service` is field 1, a string. Undefined when the message is malformed. */
function readService(request: Uint8Array): string | undefined {
  if (request.length === 0) return '';
  // No service has a name of 128 bytes, so that the length is one byte.
  const length = request[1] ?? 0;
  if (request[0] !== 0x0a || length >= 0x80 || request.length !== length + 2) return undefined;
  return Buffer.from(request.buffer, request.byteOffset + 2, length).toString();
}

/** HealthCheckResponse: `status` is field 1, an enum. */
function writeStatus(status: number): Uint8Array {
  return Uint8Array.of(0x08, status);
}
