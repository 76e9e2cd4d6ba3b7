import { sameCondition, type Verdict } from '../catalog/accepted.ts';
import type { SnapshotResource } from '../catalog/snapshot.ts';
import type { Audience, LimiterGroup } from './limiter-groups.ts';

/** The status of one RateLimitConfig. @see contract of the CRD: crds/ */
export interface ObjectStatus {
  /** `namespace/name`. */
  readonly id: string;
  readonly uid: string;
  /** The generation that was judged. */
  readonly observedGeneration: number;
  /** Limits in this object, of its version in force. */
  readonly rules: number;
  /** Version of the domain's ADS resource; empty when the domain is not served. */
  readonly version: string;
  readonly limiters: { readonly connected: number; readonly acknowledged: number };
  /** Namespace that the domain belongs to, where that is another one: read again after a restart. */
  readonly domainOwner?: string | undefined;
  readonly accepted: Condition;
  readonly programmed: Condition;
}

/** One condition, as in metav1.Condition but for the times, which its writer adds. */
export interface Condition {
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase, of a fixed set. */
  readonly reason: string;
  /** For people: what is wrong and where. */
  readonly message: string;
}

/**
 * The condition Ready, which tools that know no others wait for: the rules are accepted, and every limiter enforces them.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
export function readyOf({ accepted, programmed }: Pick<ObjectStatus, 'accepted' | 'programmed'>): Condition {
  if (accepted.status !== 'True') return accepted;
  return programmed.status === 'True' ? { ...programmed, reason: 'Enforced' } : programmed;
}

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

/** The status of an object, from what is thought of it and how far its domain has come. */
export function statusOf(verdict: Verdict, progress: DomainProgress): ObjectStatus {
  const { id, uid, generation, inForce, rules, domainOwner, accepted } = verdict;
  const { version, connected, acknowledged } = progress;
  const served = inForce !== undefined;
  return {
    id,
    uid,
    observedGeneration: generation,
    rules,
    version: served ? version : '',
    limiters: { connected, acknowledged: served ? acknowledged : 0 },
    ...(domainOwner !== undefined && { domainOwner }),
    accepted: conditionOnly(accepted),
    programmed: programmedOf(verdict, progress),
  };
}

/**
 * True only for what is accepted as a whole: whoever waits for it after an edit must not be told of the version before,
 * nor of the part of this one that is in force.
 */
function programmedOf(
  { accepted, inForce, generation }: Verdict,
  { programmed: { status, reason, message } }: DomainProgress,
): Condition {
  if (accepted.status === 'True') return { status, reason, message };
  const text =
    inForce === undefined
      ? 'nothing of this object is in force'
      : inForce === generation
        ? `what is accepted of generation ${inForce}: ${message}`
        : `generation ${inForce}, which stays in force: ${message}`;
  return { status: 'False', reason: 'NotAccepted', message: text };
}

const conditionOnly = ({ status, reason, message }: Condition): Condition => ({ status, reason, message });

/** Says the same? Then it need not be written. */
export function sameStatus(a: ObjectStatus, b: ObjectStatus): boolean {
  return (
    a.uid === b.uid &&
    a.observedGeneration === b.observedGeneration &&
    a.rules === b.rules &&
    a.version === b.version &&
    a.domainOwner === b.domainOwner &&
    a.limiters.connected === b.limiters.connected &&
    a.limiters.acknowledged === b.limiters.acknowledged &&
    sameCondition(a.accepted, b.accepted) &&
    sameCondition(a.programmed, b.programmed)
  );
}
