import type { XdsMetrics } from './xds-metrics.ts';

/**
 * Returns the callback for attempts to read files that are followed: counts them, and shows whether
 * the last one succeeded.
 */
export function countReloads(metrics: XdsMetrics, files: 'tls' | 'tokens'): (succeeded: boolean) => void {
  const reloads = files === 'tls' ? metrics.tlsReloads : metrics.tokenReloads;
  return (succeeded) => {
    reloads.inc({ result: succeeded ? 'succeeded' : 'failed' });
    metrics.filesCurrent.set({ files }, succeeded ? 1 : 0);
  };
}
