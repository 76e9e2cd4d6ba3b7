import type { Audience } from './audience.ts';
import type { LimiterGroup } from './limiter-groups.ts';
import type { Condition } from './object-status.ts';
import type { SnapshotResource } from './snapshot.ts';

/** How far the rules of one domain have come. */
export interface DomainProgress {
  /** Of the resource; empty when the domain is not served. */
  readonly version: string;
  /** Limiters that ask for this domain. */
  readonly connected: number;
  /** Limiters that have accepted this version. */
  readonly acknowledged: number;
  readonly programmed: Condition & { readonly reason: ProgrammedReason };
}

/** Reasons of the condition Programmed. */
type ProgrammedReason = 'Acknowledged' | 'Pending' | 'Nacked' | 'NotAccepted' | 'NoClients';

/** Longest text of a limiter's words in a condition. */
const maxSaid = 1000;

/**
 * Says how far one version of a domain has come with the limiters that are connected. `before` is what was said last:
 * answered once more where all had acknowledged and all have, as nearly always of nearly all domains.
 */
export function progressOf(
  { name, version }: Resource,
  audience: Audience,
  before?: DomainProgress,
): DomainProgress {
  const tally: Tally = { connected: 0, acknowledged: 0, nacked: 0, said: undefined, heldUp: undefined };
  for (const group of audience.of(name)) count(tally, group, { name, version });
  const { connected, acknowledged } = tally;
  if (acknowledged === connected && before !== undefined && isAcknowledged(before, { version, connected }))
    return before;
  const programmed = connected === 0 ? nobody(audience) : conditionOf(tally, version);
  return { version, connected, acknowledged, programmed };
}

function isAcknowledged(
  before: DomainProgress,
  { version, connected }: Pick<DomainProgress, 'version' | 'connected'>,
): boolean {
  const { reason } = before.programmed;
  return reason === 'Acknowledged' && before.version === version && before.connected === connected;
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

/** A domain, and its version; empty for one that is not served. */
type Resource = Pick<SnapshotResource, 'name' | 'version'>;

function count(tally: Tally, group: LimiterGroup, { name, version }: Resource): void {
  const { size, example, accepted, rejection } = group;
  tally.connected += size;
  if (version === '') return;
  if (accepted?.get(name) === version) {
    tally.acknowledged += size;
    return;
  }
  if (rejection?.refused.get(name) !== version) return;
  const [culprit] = rejection.blamed.keys();
  const words = culprit === undefined ? rejection.message : rejection.blamed.get(name);
  if (words === undefined) {
    tally.heldUp ??= `${example} refused everything because of domain '${culprit}'`;
    return;
  }
  tally.nacked += size;
  tally.said ??= `${example} says: ${words.slice(0, maxSaid)}`;
}

/** Limiters that ask for other domains are never sent this one, so nobody must wait for them. */
function nobody({ size }: Audience): DomainProgress['programmed'] {
  const message =
    size === 0 ? 'no limiter is connected' : 'no limiter that asks for this domain is connected';
  return { status: 'Unknown', reason: 'NoClients', message };
}

function conditionOf(tally: Tally, version: string): DomainProgress['programmed'] {
  const { connected, acknowledged, nacked, said, heldUp } = tally;
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
