import { Worker } from 'node:worker_threads';

/** Calls back at a steady pace. */
export interface Ticker {
  /** Idempotent. */
  stop(): Promise<void>;
}

/**
 * Sleeps in a thread of its own: Node's timers know whole milliseconds only and come up to one late, which would be
 * most of what is measured. Atomics.wait is exact to some ten microseconds and, unlike spinning, leaves the core to
 * the server under test.
 */
const tickSource = `
  const { parentPort, workerData } = require('node:worker_threads');
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let due = performance.now(); ; ) {
    due = Math.max(due + workerData, performance.now());
    Atomics.wait(never, 0, 0, due - performance.now());
    parentPort.postMessage(0);
  }
`;

/** Starts to call `onTick` about every `periodMs`, which may be a fraction. Ticks that were missed are not made up for. */
export function startTicker(periodMs: number, onTick: () => void): Ticker {
  const worker = new Worker(tickSource, { eval: true, workerData: periodMs });
  worker.on('message', onTick);
  return {
    async stop() {
      worker.removeAllListeners('message');
      await worker.terminate();
    },
  };
}
