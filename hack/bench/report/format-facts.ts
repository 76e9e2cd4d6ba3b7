import { busyLoad, type MachineFacts } from '../machine-facts.ts';

/** Says in one line on what machine and with what programs something was measured. */
export function formatFacts(facts: MachineFacts): string {
  return [
    `${facts.cores} cores of ${facts.cpu} (shared by the service, Redis and the load)`,
    `${Math.round(facts.memoryBytes / 1e9)} GB`,
    `Linux ${facts.kernel}`,
    `Node ${facts.node}`,
    `Redis ${facts.redis}`,
    ...(facts.load > busyLoad ? [`busy with other work before the run (load ${facts.load.toFixed(1)})`] : []),
    facts.date,
  ].join(', ');
}
