import type { Condition } from '../catalog/validation-result.ts';
import { type ClientGroup, firstText, type ServedDomain, type Subscribers } from './client-groups.ts';

/** Whether limiters enforce the rules of a domain. */
export interface DomainStatus {
  /** Version of the resource; empty when the domain is not served. */
  readonly version: string;
  /** Whether all connected limiters have acknowledged this version, once. */
  readonly isAcknowledged: boolean;
  readonly programmed: Condition & {
    readonly reason: 'Acknowledged' | 'Pending' | 'Nacked' | 'NotAccepted' | 'NoClients';
  };
}

/** A domain that is not served. */
export const notServed: DomainStatus = {
  version: '',
  isAcknowledged: false,
  programmed: { status: 'False', reason: 'Pending', message: 'not served yet' },
};

/** Characters of a limiter's message in a condition. */
const maxMessage = 1000;

export interface DomainStatusOptions {
  /** The last status of the domain. */
  readonly before?: DomainStatus | undefined;
  /** Not all limiters of an earlier process may have reconnected yet. */
  readonly isStarting?: boolean;
}

/**
 * Evaluates one version of a domain. It contains no counts, and a version that all limiters have
 * acknowledged once stays acknowledged: limiters that join get it before they are ready, and
 * thousands of statuses must not change when one joins or leaves. Only a rejection that names the
 * domain changes it. Returns `before` when nothing has changed.
 */
export function toDomainStatus(
  resource: ServedDomain,
  subscribers: Subscribers,
  { before, isStarting = false }: DomainStatusOptions = {},
): DomainStatus {
  const { version } = resource;
  const wasAcknowledged = before?.version === version && before.isAcknowledged;
  const isUnchanged = wasAcknowledged && before.programmed.status === 'True' && !subscribers.hasRejections;
  if (isUnchanged) return before;
  const tally = countLimiters(resource, subscribers);
  const blamed = describeRejection(tally.blamed);
  if (blamed !== undefined) return keep(before, version, wasAcknowledged, blamed);
  if (wasAcknowledged || (isAcknowledgedByAll(tally) && !isStarting))
    return keep(before, version, true, acknowledged);
  return keep(before, version, false, describeOpen(tally, subscribers, { resource, isStarting }));
}

function keep(
  before: DomainStatus | undefined,
  version: string,
  isAcknowledged: boolean,
  programmed: DomainStatus['programmed'],
): DomainStatus {
  const isSame =
    before?.version === version &&
    before.isAcknowledged === isAcknowledged &&
    before.programmed.reason === programmed.reason &&
    before.programmed.message === programmed.message;
  return isSame ? before : { version, isAcknowledged, programmed };
}

const acknowledged: DomainStatus['programmed'] = {
  status: 'True',
  reason: 'Acknowledged',
  message: 'acknowledged by all connected limiters',
};

/** The status of a version that limiters have acknowledged before this process started. */
export const toAcknowledged = (version: string): DomainStatus => ({
  version,
  isAcknowledged: true,
  programmed: acknowledged,
});

function describeOpen(
  tally: DomainLimiters,
  { size }: Subscribers,
  { resource, isStarting }: { readonly resource: ServedDomain; readonly isStarting: boolean },
): DomainStatus['programmed'] {
  const { connected, behind, blocked } = tally;
  const pending = (message: string) => ({ status: 'False', reason: 'Pending', message }) as const;
  const rejection = describeRejection(tally.rejection);
  if (rejection !== undefined) return rejection;
  if (isStarting) return pending('the xDS server has just started, and limiters reconnect');
  if (connected === 0) {
    const { limiterClass } = resource;
    const ofClass = limiterClass === undefined ? '' : ` of class '${limiterClass}'`;
    const message =
      size === 0 ? 'no limiter is connected' : `no limiter${ofClass} that asks for this domain is connected`;
    return { status: 'Unknown', reason: 'NoClients', message };
  }
  return pending(blocked ?? `${behind} has not acknowledged it`);
}

function describeRejection(rejection: NamedMessage | undefined): DomainStatus['programmed'] | undefined {
  if (rejection === undefined) return undefined;
  const message = `refused by ${rejection.limiter}: ${rejection.message.slice(0, maxMessage)}`;
  return { status: 'False', reason: 'Nacked', message };
}

interface NamedMessage {
  readonly limiter: string;
  readonly message: string;
}

/** The limiters of a domain. Of several, texts are about the one whose name sorts first. */
export interface DomainLimiters {
  /** Limiters that subscribe to the domain. */
  connected: number;
  /** Limiters that have this version. */
  acknowledged: number;
  /** A limiter that rejects this domain, and says so. */
  blamed: NamedMessage | undefined;
  /** A limiter that rejects everything, and names no domain. */
  rejection: NamedMessage | undefined;
  /** Why a limiter that does not object to this domain has not accepted it. */
  blocked: string | undefined;
  /** A limiter that has not answered. */
  behind: string | undefined;
}

const isAcknowledgedByAll = ({ connected, acknowledged }: DomainLimiters): boolean =>
  connected > 0 && acknowledged === connected;

/** Counts the limiters of a domain that is served. */
export function countLimiters(resource: ServedDomain, subscribers: Subscribers): DomainLimiters {
  const tally: DomainLimiters = {
    connected: 0,
    acknowledged: 0,
    blamed: undefined,
    rejection: undefined,
    blocked: undefined,
    behind: undefined,
  };
  for (const group of subscribers.of(resource)) countGroup(tally, group, resource);
  return tally;
}

function countGroup(tally: DomainLimiters, group: ClientGroup, { name, version }: ServedDomain): void {
  const { size, example, accepted, rejection } = group;
  tally.connected += size;
  if (accepted?.get(name) === version) {
    tally.acknowledged += size;
    return;
  }
  if (rejection?.resources.get(name) !== version) {
    tally.behind = firstText(tally.behind, example);
    return;
  }
  const [culprit] = rejection.blamed.keys();
  const own = rejection.blamed.get(name);
  if (own !== undefined) tally.blamed = first(tally.blamed, { limiter: example, message: own });
  else if (culprit === undefined)
    tally.rejection = first(tally.rejection, { limiter: example, message: rejection.message });
  else
    tally.blocked = firstText(tally.blocked, `${example} refused everything because of domain '${culprit}'`);
}

const first = (one: NamedMessage | undefined, other: NamedMessage): NamedMessage =>
  one === undefined || other.limiter < one.limiter ? other : one;
