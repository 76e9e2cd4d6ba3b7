import type {
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  sendUnaryData,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { checkHealth, type HealthSource, watchHealth } from '@tollgate/grpc-server/health';
import { GrpcStatus } from '@tollgate/grpc-server/status';
import type { Health } from '../health.ts';
import { unaryMethod } from './library.ts';
import type { PeerGuard } from './peer.ts';
import { healthSource } from './unary-server.ts';

/** The definition of grpc.health.v1.Health for a server of grpc-js. */
export const healthDefinition: ServiceDefinition = {
  Check: unaryMethod('/grpc.health.v1.Health/Check'),
  Watch: { ...unaryMethod('/grpc.health.v1.Health/Watch'), responseStream: true },
};

/** Options of a health service. */
export interface HealthServiceOptions {
  readonly health: Health;
  /** The service name of health checks; the empty name stands for the server. */
  readonly serviceName: string;
  readonly guard: PeerGuard;
  /** Called at the start of every Check; the returned function is called at its end. */
  readonly beginCheck: () => () => void;
}

/** grpc.health.v1.Health for a server of grpc-js, over the health of the process. */
export class HealthService {
  readonly implementation: UntypedServiceImplementation;
  readonly #options: HealthServiceOptions;
  readonly #source: HealthSource;
  readonly #watches = new Set<ServerWritableStream<Uint8Array, Uint8Array>>();

  constructor(options: HealthServiceOptions) {
    this.#options = options;
    this.#source = healthSource(options.health, options.serviceName);
    this.implementation = {
      Check: (call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>) =>
        this.#check(call, callback),
      Watch: (call: ServerWritableStream<Uint8Array, Uint8Array>) => this.#watch(call),
    };
  }

  /** Ends all Watch streams, which would delay a drain. */
  endWatches(): void {
    for (const watch of this.#watches) watch.end();
  }

  #check(call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>): void {
    const refusal = this.#options.guard(call);
    if (refusal !== undefined) {
      callback({ code: status.UNAUTHENTICATED, details: refusal });
      return;
    }
    const done = this.#options.beginCheck();
    const reply = checkHealth(this.#source, call.request);
    if (reply instanceof GrpcStatus) callback({ code: reply.code, details: reply.message });
    else callback(null, reply);
    done();
  }

  #watch(call: ServerWritableStream<Uint8Array, Uint8Array>): void {
    const refusal = this.#options.guard(call);
    if (refusal !== undefined) {
      call.emit('error', { code: status.UNAUTHENTICATED, details: refusal });
      return;
    }
    const unsubscribe = watchHealth(this.#source, call.request, (reply) => call.write(reply));
    this.#watches.add(call);
    call.on('close', () => {
      unsubscribe();
      this.#watches.delete(call);
    });
  }
}
