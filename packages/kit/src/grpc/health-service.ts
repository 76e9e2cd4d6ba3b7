import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type {
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  sendUnaryData,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@tollgate/proto/grpc/health/v1/health';
import type { Health } from '../health.ts';
import type { PeerGuard } from './peer-guard.ts';
import { unaryMethod } from './raw-method.ts';

/** The definition of grpc.health.v1.Health for the server. */
export const healthDefinition: ServiceDefinition = {
  Check: unaryMethod('/grpc.health.v1.Health/Check'),
  Watch: { ...unaryMethod('/grpc.health.v1.Health/Watch'), responseStream: true },
};

/** The health service of a server. */
export interface HealthService {
  readonly implementation: UntypedServiceImplementation;
  /** Ends all Watch streams: they would otherwise hold up a server that drains. */
  endWatches(): void;
}

/** Stands for a request nobody can read: no service of that name exists. */
const unreadable = '\u0000';

/** What the health service takes. */
export interface HealthServiceDeps {
  readonly health: Health;
  /** The name under which that is asked for; the empty name asks whether the server is there at all. */
  readonly serviceName: string;
  readonly guard: PeerGuard;
  /** Called at the start of every Check; what it answers is called at the end. */
  readonly beginCheck: () => () => void;
}

/** Implements grpc.health.v1.Health over the service's health. */
export function createHealthService({
  health,
  serviceName,
  guard,
  beginCheck,
}: HealthServiceDeps): HealthService {
  const watches = new Set<ServerWritableStream<Uint8Array, Uint8Array>>();
  const statusOf = (service: string): ServingStatus => {
    if (service === '') {
      return ServingStatus.SERVING;
    }
    if (service !== serviceName) {
      return ServingStatus.SERVICE_UNKNOWN;
    }
    return health.isHealthy() ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  };

  const implementation = {
    Check(call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>) {
      const refusal = guard(call);
      if (refusal !== undefined) {
        callback({ code: status.UNAUTHENTICATED, details: refusal });
        return;
      }
      const done = beginCheck();
      const service = serviceAskedFor(call.request);
      if (service === undefined) {
        callback({ code: status.INVALID_ARGUMENT, details: 'the request is not a HealthCheckRequest' });
      } else if (statusOf(service) === ServingStatus.SERVICE_UNKNOWN) {
        callback({ code: status.NOT_FOUND, details: 'unknown service' });
      } else {
        callback(null, encode(statusOf(service)));
      }
      done();
    },

    Watch(call: ServerWritableStream<Uint8Array, Uint8Array>) {
      const refusal = guard(call);
      if (refusal !== undefined) {
        call.emit('error', { code: status.UNAUTHENTICATED, details: refusal });
        return;
      }
      const service = serviceAskedFor(call.request) ?? unreadable;
      let last: ServingStatus | undefined;
      const tell = (): void => {
        const now = statusOf(service);
        if (now !== last) {
          last = now;
          call.write(encode(now));
        }
      };
      tell();
      const unsubscribe = health.onChange(tell);
      watches.add(call);
      call.on('close', () => {
        unsubscribe();
        watches.delete(call);
      });
    },
  };

  return {
    implementation,
    endWatches() {
      for (const watch of watches) {
        watch.end();
      }
    },
  };
}

function serviceAskedFor(bytes: Uint8Array): string | undefined {
  try {
    return fromBinary(HealthCheckRequestSchema, bytes).service;
  } catch {
    return undefined;
  }
}

function encode(servingStatus: ServingStatus): Uint8Array {
  return toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: servingStatus }));
}
