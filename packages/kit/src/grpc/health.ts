import type {
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  sendUnaryData,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { checkHealth, type HealthSource, ServingStatus, watchHealth } from '@tollgate/grpc-server/health';
import { GrpcStatus } from '@tollgate/grpc-server/status';
import type { Health } from '../health.ts';
import { unaryMethod } from './library.ts';
import type { PeerGuard } from './peer.ts';

/** The definition of grpc.health.v1.Health for a server of grpc-js. */
export const healthDefinition: ServiceDefinition = {
  Check: unaryMethod('/grpc.health.v1.Health/Check'),
  Watch: { ...unaryMethod('/grpc.health.v1.Health/Watch'), responseStream: true },
};

/** The health service of a server of grpc-js. */
export interface HealthService {
  readonly implementation: UntypedServiceImplementation;
  /** Ends all Watch streams: they would otherwise hold up a server that drains. */
  endWatches(): void;
}

/** What the health service takes. */
export interface HealthServiceDeps {
  readonly health: Health;
  /** The service name of health checks; the empty name asks whether the server is there at all. */
  readonly serviceName: string;
  readonly guard: PeerGuard;
  /** Called at the start of every Check; the returned function is called at its end. */
  readonly beginCheck: () => () => void;
}

/** Implements grpc.health.v1.Health over the service's health. */
export function createHealthService(deps: HealthServiceDeps): HealthService {
  const { guard, beginCheck } = deps;
  const source = healthSource(deps.health, deps.serviceName);
  const watches = new Set<ServerWritableStream<Uint8Array, Uint8Array>>();

  const implementation = {
    Check(call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>) {
      const refusal = guard(call);
      if (refusal !== undefined) {
        callback({ code: status.UNAUTHENTICATED, details: refusal });
        return;
      }
      const done = beginCheck();
      const reply = checkHealth(source, call.request);
      if (reply instanceof GrpcStatus) callback({ code: reply.code, details: reply.message });
      else callback(null, reply);
      done();
    },

    Watch(call: ServerWritableStream<Uint8Array, Uint8Array>) {
      const refusal = guard(call);
      if (refusal !== undefined) {
        call.emit('error', { code: status.UNAUTHENTICATED, details: refusal });
        return;
      }
      const unsubscribe = watchHealth(source, call.request, (reply) => call.write(reply));
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

/** The state of one service for health checks, and of the server under the empty name. */
export function healthSource(health: Health, serviceName: string): HealthSource {
  return {
    status(service) {
      if (service === '') return ServingStatus.SERVING;
      if (service !== serviceName) return ServingStatus.SERVICE_UNKNOWN;
      return health.isHealthy() ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    },
    onChange: (changed) => health.onChange(changed),
  };
}
