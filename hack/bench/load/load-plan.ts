/** What the load process is told to do: one measurement against one server. All numbers are bounds as well. */
export interface LoadPlan {
  host: string;
  port: number;
  /** gRPC method, such as `/package.Service/Method`. */
  path: string;
  connections: number;
  /** Different requests, taken in turn: serialized messages in base64. */
  messages: readonly string[];
  /** How long the load runs before it is measured. */
  warmUpMs: number;
  /** How long it is measured. */
  measureMs: number;
  load: ClosedLoop | OpenLoop;
}

/** Every stream sends its next call as soon as the one before is answered: finds what the server can do. */
export interface ClosedLoop {
  kind: 'closed';
  /** Calls in flight on each connection. */
  streams: number;
}

/** Calls start at fixed times, whether or not earlier ones are answered: finds how long callers wait. */
export interface OpenLoop {
  kind: 'open';
  /** Calls a second. */
  rate: number;
}

/** What was counted during the measured time. */
export interface LoadCounts {
  /** Answers with `grpc-status: 0`. */
  decisions: number;
  /** Those of them that said OVER_LIMIT. */
  overLimit: number;
  /** All other answers, by what they said: gRPC status and message, or how the stream ended. */
  failures: Readonly<Record<string, number>>;
  /** Wall-clock time in which they were counted. */
  elapsedMs: number;
}

/** How long callers waited at a fixed rate, from the time at which each call was due: a late start counts as waiting. */
export interface LoadLatency {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** Part of the waiting that the generator itself caused: how late it started calls, 99th percentile. */
  generatorP99Ms: number;
}

/** A measurement. */
export interface LoadResult {
  counts: LoadCounts;
  /** Present for an open loop. */
  latency?: LoadLatency;
}

/** Messages from the load process, in this order; `failed` may replace any of them. */
export type LoadEvent =
  | { kind: 'measuring' }
  | { kind: 'measured' }
  | { kind: 'result'; result: LoadResult }
  | { kind: 'failed'; message: string };
