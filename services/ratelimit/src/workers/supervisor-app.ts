import { once } from 'node:events';
import { createServer, type ListenOptions } from 'node:net';
import type { Writable } from 'node:stream';
import { nameListenSettings } from '@tollgate/kit/http-server';
import { Lifecycle } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { maxTimerMs } from '@tollgate/kit/time';
import type { Settings } from '../config/settings.ts';
import { StatsRegistry } from '../metrics/registry.ts';
import { createSink, StatsFlusher } from '../metrics/sinks.ts';
import { Supervisor } from './supervisor.ts';

/** Workers end at their own drain deadline, or a little later; then they are killed. */
const extraDrainMs = 5000;

interface SupervisorAppOptions {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Where statistics are written when no sink is chosen. */
  readonly output: Writable;
}

/** The process that supervises the workers. It has the debug port and the sinks, and no rules. */
export async function buildSupervisorApp(
  settings: Settings,
  { logger, nowMs, output }: SupervisorAppOptions,
): Promise<Lifecycle> {
  const drainTimeoutMs = Math.min(
    maxTimerMs,
    settings.shutdownDelayMs + settings.drainTimeoutMs + extraDrainMs,
  );
  const lifecycle = new Lifecycle({ logger, drainTimeoutMs });
  const stats = new StatsRegistry();
  const sink = await createSink(settings, {
    registry: stats,
    output,
    logger,
    collect: () => supervisor.collect({ processMetrics: true }),
  });
  const maxTimings = sink?.timings?.max ?? 0;
  const supervisor = new Supervisor({ workers: settings.workers, stats, logger, maxTimings });
  const flusher = new StatsFlusher({
    registry: stats,
    sink,
    flushIntervalMs: settings.statsFlushIntervalMs,
    nowMs,
  });

  // Stopped in reverse order: statistics are sent after the last reports of the workers.
  lifecycle.add({ name: 'statistics', start: () => flusher.start(), stop: () => flusher.close() });
  lifecycle.add({ name: 'ports', start: () => checkPorts(settings) });
  addDebugPort(lifecycle, settings, { supervisor, logger });
  lifecycle.add({
    name: 'workers',
    start: (options) => supervisor.start(options),
    stop: (options) => supervisor.stop('the supervisor stops', options),
  });
  lifecycle.add({
    name: 'announcement',
    start: () => {
      const { port: http, grpcPort: grpc, debugPort: debug, adminPort: admin, workers } = settings;
      logger.info({ http, grpc, debug, ...(admin !== 0 && { admin }), workers }, 'listening');
    },
  });
  return lifecycle;
}

/**
 * Workers share ports, with any process of this user, so the supervisor checks first that each is
 * free.
 *
 * @throws Error when one is in use, or when the system cannot share ports.
 */
async function checkPorts(settings: Settings): Promise<void> {
  const { host, port, grpcHost, grpcPort, adminHost, adminPort } = settings;
  await nameListenSettings(tryToListen({ host, port }), { host: 'HOST', port: 'PORT' });
  await nameListenSettings(tryToListen({ host: grpcHost, port: grpcPort }), {
    host: 'GRPC_HOST',
    port: 'GRPC_PORT',
  });
  if (adminPort !== 0) {
    await nameListenSettings(tryToListen({ host: adminHost, port: adminPort }), {
      host: 'ADMIN_HOST',
      port: 'ADMIN_PORT',
    });
  }
  try {
    await tryToListen({ host, port, reusePort: true });
  } catch (cause) {
    throw new Error(
      'this system does not support SO_REUSEPORT: set WORKERS=1, and run more instances in its place',
      { cause },
    );
  }
}

async function tryToListen(options: ListenOptions): Promise<void> {
  const server = createServer();
  server.listen(options);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}

/** As in a single process, a debug port that is in use does not prevent the start. */
function addDebugPort(
  lifecycle: Lifecycle,
  { debugHost: host, debugPort: port }: Settings,
  { supervisor, logger }: { readonly supervisor: Supervisor; readonly logger: Logger },
): void {
  // The worker reads the requests.
  const server = createServer({ pauseOnConnect: true }, (socket) => supervisor.serveDebug(socket));
  lifecycle.add({
    name: 'debug port',
    async start() {
      try {
        server.listen({ host, port });
        await nameListenSettings(once(server, 'listening'), { host: 'DEBUG_HOST', port: 'DEBUG_PORT' });
      } catch (error) {
        logger.error({ err: error, host, port }, 'debug server not started');
      }
    },
    stop: () => void server.close(),
  });
}
