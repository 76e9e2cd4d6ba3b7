import { join } from 'node:path';
import { freePort } from '@tollgate/testkit/free-port';
import { withFreePort } from '@tollgate/testkit/with-free-port';
import { startNodeProcess } from './node-process.ts';

/** How the service under test is started. */
export interface ServiceOptions {
  /** Folder with a folder `config` of rule files. */
  runtimeRoot: string;
  /** Settings that say where it counts; in memory without them. */
  backendSettings?: Readonly<Record<string, string>>;
  /** Flags of Node. */
  nodeFlags: readonly string[];
}

/** The service under test, running. */
export interface Service {
  readonly pid: number;
  readonly host: string;
  readonly grpcPort: number;
  readonly httpPort: number;
  /** From the start of the process until it said it was healthy. */
  readonly startMs: number;
  /** Stops it as an operator would (SIGTERM), kills it when it does not stop. Idempotent. */
  stop(): Promise<void>;
}

const program = join(import.meta.dirname, '../../services/ratelimit/src/main.ts');
const loopback = '127.0.0.1';

/**
 * Starts services/ratelimit on free ports of the loopback address and waits until it is healthy.
 *
 * @throws Error with its output when it does not get there; it is gone by then.
 */
export function startService(options: ServiceOptions): Promise<Service> {
  // Another program may take one of the ports meanwhile: the service says so and ends, and is started on others.
  return withFreePort(async (grpcPort) => {
    return startOn({ grpcPort, httpPort: await freePort(), debugPort: await freePort() }, options);
  });
}

interface Ports {
  grpcPort: number;
  httpPort: number;
  debugPort: number;
}

async function startOn({ grpcPort, httpPort, debugPort }: Ports, options: ServiceOptions): Promise<Service> {
  const { pid, startMs, stop } = await startNodeProcess({
    program,
    nodeFlags: options.nodeFlags,
    env: {
      HOST: loopback,
      PORT: String(httpPort),
      GRPC_HOST: loopback,
      GRPC_PORT: String(grpcPort),
      DEBUG_HOST: loopback,
      DEBUG_PORT: String(debugPort),
      RUNTIME_ROOT: options.runtimeRoot,
      // Files are swapped in place, as an editor would.
      RUNTIME_WATCH_ROOT: 'false',
      USE_PUSHSTATS: 'false',
      ...(options.backendSettings ?? { BACKEND_TYPE: 'memory' }),
    },
    readyUrl: `http://${loopback}:${httpPort}/healthcheck`,
  });
  return { pid, host: loopback, grpcPort, httpPort, startMs, stop };
}
