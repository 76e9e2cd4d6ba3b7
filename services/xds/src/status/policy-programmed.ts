import type { Condition } from '../catalog/validation-result.ts';
import { type ClientGroup, firstText } from './client-groups.ts';
import { type DomainStatus, notServed } from './domain-status.ts';

/** Whether the clients of one kind have a version of a policy. */
export type ClientAnswer =
  | { readonly state: 'acknowledged' | 'absent' }
  | { readonly state: 'behind'; readonly client: string }
  | { readonly state: 'refused'; readonly client: string; readonly message: string };

/** A policy in the resource of its namespace, as auth servers get it. */
interface ServedPolicy {
  /** `namespace/name`. */
  readonly name: string;
  readonly namespace: string;
  /** Version of the resource of the namespace; undefined if there is none. */
  readonly version: string | undefined;
}

/** A message of this length may have been cut by the replica that reports it. */
const maybeCut = 300;

/**
 * Evaluates the answers of auth servers. One that refuses a set names the policies that it does not
 * understand; others of the set are in force there.
 */
export function findAuthServerAnswer(policy: ServedPolicy, groups: readonly ClientGroup[]): ClientAnswer {
  const answers = groups.map((group) => answerOf(policy, group));
  const refused = answers.filter((answer) => answer.state === 'refused');
  const [refusal] = refused.toSorted((a, b) => (a.client < b.client ? -1 : 1));
  if (refusal !== undefined) return refusal;
  const behind = answers
    .flatMap((answer) => (answer.state === 'behind' ? [answer.client] : []))
    .reduce<string | undefined>(firstText, undefined);
  if (behind !== undefined) return { state: 'behind', client: behind };
  return { state: answers.length === 0 ? 'absent' : 'acknowledged' };
}

function answerOf({ name, namespace, version }: ServedPolicy, group: ClientGroup): ClientAnswer {
  const { accepted, rejection, example: client } = group;
  if (version !== undefined && accepted?.get(namespace) === version) return { state: 'acknowledged' };
  if (version === undefined || rejection?.resources.get(namespace) !== version)
    return { state: 'behind', client };
  const { message } = rejection;
  const lines = message.split('\n');
  const named = lines.filter((line) => firstWord(line).includes('/'));
  const own = lines.filter((line) => firstWord(line) === name);
  if (own.length > 0 || named.length === 0)
    return { state: 'refused', client, message: (own.length > 0 ? own : lines).join('\n') };
  return message.length < maybeCut ? { state: 'acknowledged' } : { state: 'behind', client };
}

/** The name that a line of a NACK begins with: `shop/orders: …`. */
const firstWord = (line: string): string => line.split(/[:\s]/, 1)[0] ?? '';

/** Converts the status of a policy's domain of limits; a policy without limits has none. */
export function toLimiterAnswer(domain: DomainStatus | undefined): ClientAnswer {
  if (domain === undefined) return { state: 'acknowledged' };
  const { reason, message } = domain.programmed;
  if (reason === 'Acknowledged') return { state: 'acknowledged' };
  if (reason === 'NoClients') return { state: 'absent' };
  if (reason === 'Nacked') return { state: 'refused', client: '', message };
  return { state: 'behind', client: domain === notServed ? '' : message };
}

export interface ProgrammedOptions {
  readonly authServers: ClientAnswer;
  readonly limiters: ClientAnswer;
  /** Whether all clients have acknowledged this version once. */
  readonly wasAcknowledged: boolean;
  /** Clients of an earlier process may not have reconnected yet. */
  readonly isStarting: boolean;
}

/** The condition Programmed of a version that is served. It contains no counts of clients. */
export function toProgrammed({ authServers, limiters, ...rest }: ProgrammedOptions): Condition {
  if (authServers.state === 'refused')
    return nacked(`refused by auth server ${authServers.client}: ${authServers.message}`);
  if (limiters.state === 'refused') return nacked(`limits ${limiters.message}`);
  if (rest.wasAcknowledged || (areAcknowledged(authServers, limiters) && !rest.isStarting))
    return {
      ...{ status: 'True', reason: 'Programmed' },
      message: 'acknowledged by all connected auth servers and limiters',
    };
  if (rest.isStarting) return pending('the xDS server has just started, and its clients reconnect');
  const absent = [
    ...(authServers.state === 'absent' ? ['auth server'] : []),
    ...(limiters.state === 'absent' ? ['limiter'] : []),
  ];
  if (absent.length > 0)
    return { status: 'Unknown', reason: 'NoClients', message: `no ${absent.join(' and no ')} is connected` };
  if (authServers.state === 'behind')
    return pending(`auth server ${authServers.client} has not acknowledged it`);
  return pending(limiters.state === 'behind' && limiters.client !== '' ? limiters.client : 'not served yet');
}

const pending = (message: string): Condition => ({ status: 'False', reason: 'Pending', message });
const nacked = (message: string): Condition => ({ status: 'False', reason: 'Nacked', message });

const areAcknowledged = (...answers: readonly ClientAnswer[]): boolean =>
  answers.every(({ state }) => state === 'acknowledged');
