import { statsNames } from './stats-names.ts';
import type { StatsRegistry } from './stats-registry.ts';

/** Keeps `certs.load_attempts`, `.load_failures` and `.num_values` (1 once there are certificates). */
export function countCertificateLoads(stats: StatsRegistry): (succeeded: boolean) => void {
  const attempts = stats.counter(statsNames.certsLoadAttempts);
  const failures = stats.counter(statsNames.certsLoadFailures);
  const values = stats.gauge(statsNames.certsNumValues);
  return (succeeded) => {
    attempts.value += 1;
    if (succeeded) {
      values.value = 1;
    } else {
      failures.value += 1;
    }
  };
}
