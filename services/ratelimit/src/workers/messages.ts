import type { StatsReport } from './stats-report.ts';

/** A message from the supervisor to a worker. */
export type WorkerRequest =
  /** Open the ports. */
  | { readonly kind: 'listen' }
  /** Send a report; keep up to `maxTimings` single timings for the next one. */
  | {
      readonly kind: 'report';
      readonly id: number;
      readonly maxTimings: number;
      readonly processMetrics: boolean;
    }
  /** The answer to `statistics`. */
  | { readonly kind: 'statistics'; readonly id: number; readonly text: string }
  /** Comes with the socket of a connection to the debug port. */
  | { readonly kind: 'debug connection' }
  | { readonly kind: 'stop'; readonly reason: string };

/** A message from a worker to the supervisor. */
export type WorkerMessage =
  /** Rules and counter backend are there: the ports can be opened. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'listening' }
  /** Without `id`, the last one before the worker ends. */
  | { readonly kind: 'report'; readonly id?: number; readonly report: StatsReport }
  /** Asks for the text of `/stats`, summed over all workers. */
  | { readonly kind: 'statistics'; readonly id: number };
