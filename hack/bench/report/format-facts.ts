import { busyLoad, type MachineFacts } from '../machine-facts.ts';

/** What shared the machine with what was measured. */
export interface Company {
  readonly sharedBy: string;
  /** Programs that are not ours, with their versions. */
  readonly programs: readonly string[];
}

/** Says in one line on what machine and with what programs something was measured. */
export function formatFacts(facts: MachineFacts, company: Company = withRedis(facts)): string {
  return [
    `${facts.cores} cores of ${facts.cpu} (shared by ${company.sharedBy})`,
    `${Math.round(facts.memoryBytes / 1e9)} GB`,
    `Linux ${facts.kernel}`,
    `Node ${facts.node}`,
    ...company.programs,
    ...(facts.load > busyLoad ? [`busy with other work before the run (load ${facts.load.toFixed(1)})`] : []),
    facts.date,
  ].join(', ');
}

function withRedis({ redis }: MachineFacts): Company {
  return { sharedBy: 'the service, Redis and the load', programs: [`Redis ${redis}`] };
}
