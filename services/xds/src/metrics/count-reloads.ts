import type { Counter } from 'prom-client';

/** Makes what is told of every attempt to read files that are followed. Both results are there from the start, for alerts. */
export function countReloads(reloads: Counter<'result'>): (succeeded: boolean) => void {
  for (const result of ['succeeded', 'failed']) reloads.inc({ result }, 0);
  return (succeeded) => reloads.inc({ result: succeeded ? 'succeeded' : 'failed' });
}
