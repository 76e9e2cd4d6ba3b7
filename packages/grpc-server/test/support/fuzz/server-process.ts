// The server that is fuzzed, in a process of its own. Talks to its parent over IPC: its ports, then
// its state for each message, which says whether to collect garbage first.
import { ClientBuffers } from '../../../src/client-buffers.ts';
import { healthMethods, ServingStatus } from '../../../src/health.ts';
import { defaultLimits } from '../../../src/limits.ts';
import { type ConnectionTimes, GrpcServer, type ServerOptions } from '../../../src/server.ts';
import { Code, GrpcStatus } from '../../../src/status.ts';
import { fuzzMethods } from './methods.ts';

/** Messages to the parent. */
export type ServerMessage =
  | { readonly ports: readonly number[] }
  | {
      readonly connections: number;
      readonly calls: number;
      readonly watchers: number;
      readonly heapBytes: number;
      readonly rssBytes: number;
      readonly internalErrors: readonly string[];
    };

/** So tight that the mutated sessions reach them. */
const tightLimits = {
  maxMessageBytes: 20_000,
  maxHeaderListBytes: 2_000,
  maxConcurrentStreams: 4,
  overheadBurst: 50,
  overheadPerSecond: 10,
  maxWriteBufferBytes: 20_000,
  writeStallTimeoutMs: 1_000,
  requestTimeoutMs: 500,
  prefaceTimeoutMs: 500,
  maxConnections: 24,
};
const shortTimes: ConnectionTimes = { maxAgeMs: 3_000, maxAgeGraceMs: 500, keepaliveMs: 400 };

const internalErrors: string[] = [];
const watchers = new Set<() => void>();
let serving = true;
setInterval(() => {
  serving = !serving;
  for (const changed of watchers) changed();
}, 20).unref();

const health = healthMethods({
  status: () => (serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING),
  onChange(changed) {
    watchers.add(changed);
    return () => watchers.delete(changed);
  },
});

function createServer(options: Pick<ServerOptions, 'limits' | 'times' | 'buffers'>): GrpcServer {
  return new GrpcServer({
    ...options,
    methods: { unary: { ...fuzzMethods, ...health.unary }, streaming: health.streaming },
    toStatus: () => new GrpcStatus(Code.INTERNAL, 'failed: 100 % ä'),
    onInternalError: (error) => {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      if (internalErrors.length < 10) internalErrors.push(text);
    },
  });
}

const servers = [
  createServer({ limits: { ...defaultLimits, maxConnections: 1_000 } }),
  createServer({
    limits: tightLimits,
    times: shortTimes,
    buffers: new ClientBuffers({ maxBytes: 300_000 }),
  }),
];
const ports = await Promise.all(servers.map((server) => server.listen({ host: '127.0.0.1', port: 0 })));

function send(message: ServerMessage): void {
  process.send?.(message);
}

function sum(count: (server: GrpcServer) => number): number {
  return servers.reduce((total, server) => total + count(server), 0);
}

process.on('message', (collectGarbage: boolean) => {
  if (collectGarbage) globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  send({
    connections: sum((server) => server.connectionCount),
    calls: sum((server) => server.callCount),
    watchers: watchers.size,
    heapBytes: heapUsed,
    rssBytes: rss,
    internalErrors,
  });
});
process.once('disconnect', () => process.exit());
send({ ports });
