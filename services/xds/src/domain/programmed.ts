import type { LimiterGroup } from './limiter-groups.ts';
import type { Condition } from './object-status.ts';

/** How far the rules of one domain have come. */
export interface DomainProgress {
  /** Of the resource; empty when the domain is not served. */
  readonly version: string;
  readonly connected: number;
  /** Limiters that have accepted this version. */
  readonly acknowledged: number;
  readonly programmed: Condition & { readonly reason: ProgrammedReason };
}

/** Reasons of the condition Programmed. */
export type ProgrammedReason = 'Acknowledged' | 'Pending' | 'Nacked' | 'NotAccepted' | 'NoClients';

/** Longest text of a limiter's words in a condition. */
const maxSaid = 1000;

/** Says how far one version of a domain has come with the limiters that are connected. */
export function progressOf(domain: string, version: string, groups: readonly LimiterGroup[]): DomainProgress {
  const tally: Tally = { connected: 0, acknowledged: 0, nacked: 0, said: undefined, heldUp: undefined };
  for (const group of groups) count(tally, group, { domain, version });
  const { connected, acknowledged } = tally;
  return { version, connected, acknowledged, programmed: conditionOf(tally, version) };
}

interface Tally {
  connected: number;
  acknowledged: number;
  nacked: number;
  /** What one of those that reject this domain says. */
  said: string | undefined;
  /** Why one that has nothing against this domain has not taken it all the same. */
  heldUp: string | undefined;
}

interface Resource {
  readonly domain: string;
  readonly version: string;
}

function count(tally: Tally, group: LimiterGroup, { domain, version }: Resource): void {
  const { size, example, accepted, rejection } = group;
  tally.connected += size;
  if (version === '') return;
  if (accepted?.get(domain) === version) {
    tally.acknowledged += size;
    return;
  }
  if (rejection?.refused.get(domain) !== version) return;
  const [culprit] = rejection.blamed.keys();
  const words = culprit === undefined ? rejection.message : rejection.blamed.get(domain);
  if (words === undefined) {
    tally.heldUp ??= `${example} refused everything because of domain '${culprit}'`;
    return;
  }
  tally.nacked += size;
  tally.said ??= `${example} says: ${words.slice(0, maxSaid)}`;
}

function conditionOf(tally: Tally, version: string): DomainProgress['programmed'] {
  const { connected, acknowledged, nacked, said, heldUp } = tally;
  if (connected === 0) return { status: 'Unknown', reason: 'NoClients', message: 'no limiter is connected' };
  if (nacked > 0)
    return { status: 'False', reason: 'Nacked', message: `refused by ${of(nacked, connected)}; ${said}` };
  if (acknowledged === connected)
    return { status: 'True', reason: 'Acknowledged', message: `acknowledged by ${of(connected, connected)}` };
  const message = version === '' ? 'not served yet' : `acknowledged by ${of(acknowledged, connected)}`;
  return {
    status: 'False',
    reason: 'Pending',
    message: heldUp === undefined ? message : `${message}; ${heldUp}`,
  };
}

const of = (count: number, all: number): string => `${count} of ${all} ${all === 1 ? 'limiter' : 'limiters'}`;
