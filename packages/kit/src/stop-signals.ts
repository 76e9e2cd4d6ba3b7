// Imports nothing: entry points load it before everything else.
import type { EventEmitter } from 'node:events';

/** Sent by Kubernetes, by a terminal on Ctrl-C, and by a terminal that closes. */
export const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** The parts of `process` that react to signals. */
export type SignalledProcess = {
  readonly signals: Pick<EventEmitter, 'on' | 'off'>;
  readonly exit: (code: number) => void;
};

/**
 * Exits with 0 at the first signal that stops a service, until the returned function is called:
 * while modules load and the service is built, nothing is running yet. Without a handler, a signal
 * kills the process, and process 1 of a container ignores it and starts all the same.
 */
export function exitOnStopSignal({ signals, exit }: SignalledProcess): () => void {
  const onSignal = (): void => exit(0);
  for (const signal of stopSignals) signals.on(signal, onSignal);
  return () => {
    for (const signal of stopSignals) signals.off(signal, onSignal);
  };
}
