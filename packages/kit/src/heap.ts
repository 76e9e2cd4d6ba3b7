import { setFlagsFromString } from 'node:v8';

/**
 * Keeps requests out of V8's old generation, where only major collections free them (decision 72).
 * Call it before requests are served; `NODE_OPTIONS` does not allow these flags.
 *
 * @param growingPercent by how much the heap grows between two major collections. V8 itself
 * chooses up to four times, but next to nothing once a process was idle for 8 seconds: several
 * collections a second follow, also under load.
 */
export function configureHeap({ growingPercent }: { readonly growingPercent: number }): void {
  setFlagsFromString(`--heap-growing-percent=${growingPercent}`);
  // Requests that wait, for a store or another service, survive minor collections. After a few of
  // these V8 may decide to create such objects in the old generation from then on. Some processes,
  // once decided, took twice the CPU time for each request.
  setFlagsFromString('--no-allocation-site-pretenuring');
}
