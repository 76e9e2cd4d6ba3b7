import { type Schedule, scheduleByTimer } from '@tollgate/kit/time';
import type { Snapshot } from '../catalog/snapshot.ts';
import type { KnownResources, RejectedResources, ResponseCache } from './exchange.ts';
import { maxRejectionLength } from './limits.ts';

/** A limiter or an auth server: an ADS stream that has subscribed to a type of resources. */
export interface Client {
  /** Id of the stream, unique in this process. */
  readonly id: string;
  /** Chosen by the client; may be empty. */
  readonly nodeId: string;
  /** Name in the client certificate; may be empty. The node id is trusted only within it. */
  readonly identity: string;
  /** `address:port`. */
  readonly peer: string;
  readonly protocol: 'sotw' | 'delta';
  readonly connectedMs: number;
  /** Undefined for a client without a class. */
  readonly limiterClass: string | undefined;
  /** Whether it says which rules have matched requests. */
  readonly reportsMatches: boolean;
  /** Domains subscribed to by name; undefined for a wildcard. Others are not sent. */
  readonly names: ReadonlySet<string> | undefined;
  /** Accepted versions by domain; undefined before its first ACK. */
  readonly accepted: ReadonlyMap<string, string> | undefined;
  /** The snapshot version of its last ACK; undefined before. */
  readonly acceptedVersion: string | undefined;
  /** When it has acknowledged that version first. */
  readonly acceptedMs?: number | undefined;
  /** Rejected version without a replacement that was sent. */
  readonly rejection: Rejection | undefined;
}

/** A NACK. */
export interface Rejection {
  /** Rejected versions by domain. */
  readonly resources: ReadonlyMap<string, string>;
  readonly snapshotVersion: string;
  /** The client's message, escaped and cut. */
  readonly message: string;
  readonly atMs: number;
}

/** Display name: node id or address, with the identity that vouches for it. */
export function clientName({ nodeId, peer, identity }: Pick<Client, 'nodeId' | 'peer' | 'identity'>) {
  return identity === '' ? nodeId || peer : `${nodeId || peer} (${identity})`;
}

/**
 * Characters that change how the text around them is displayed: control characters except the line
 * feed, bidirectional marks, line separators. A client could forge lines of a terminal or a log
 * with them.
 */
const unsafeCharacters = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes and cuts text of a client for logs, statuses and pages. */
export function escapeClientText(text: string, maxLength: number): string {
  // The first cut bounds the work.
  const escaped = text.slice(0, maxLength).replaceAll(unsafeCharacters, escapeCharacter);
  // The cut may have split a surrogate pair.
  return escaped.slice(0, maxLength).toWellFormed();
}

function escapeCharacter(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}

/** The message of a NACK as it is stored. */
export function rejectionMessage(message: string): string {
  return escapeClientText(message || 'rejected without a message', maxRejectionLength);
}

/**
 * Finds the resources of a rejection: our limiters start each line with a domain, and our auth
 * servers with a policy, `<namespace>/<name>: …`.
 */
export function parseRejection<Resources extends ReadonlyMap<string, unknown>>(rejection: {
  readonly resources: Resources;
  readonly message: string;
}) {
  const { resources, message } = rejection;
  const blamed = new Map<string, string>();
  for (const line of message.split('\n')) {
    const name = parseResourceName(line, resources);
    if (name === undefined) continue;
    const previous = blamed.get(name);
    blamed.set(name, previous === undefined ? line : `${previous}\n${line}`);
  }
  return {
    resources,
    message,
    /** Lines of the message by resource; empty when it names none, which blames all resources. */
    blamed: blamed as ReadonlyMap<string, string>,
  };
}

/** The resource that a line starts with; the longest, as names may contain colons and slashes. */
function parseResourceName(line: string, resources: ReadonlyMap<string, unknown>): string | undefined {
  const starts = [...line.matchAll(/[:/]/g)].map(({ index }) => line.slice(0, index));
  return starts.findLast((start) => resources.has(start));
}

/** A new client counts without an answer after this time. Ours compiles 10,000 domains in less. */
const firstAnswerMs = 5_000;

/** The connected clients and what each of them enforces. */
export class ClientRegistry {
  readonly #clients = new Map<string, Client>();
  readonly #listeners = new Set<() => void>();
  /** Clients that have not answered yet, with the function that cancels their timer. */
  readonly #unanswered = new Map<string, () => void>();
  readonly #schedule: Schedule;

  constructor({ schedule = scheduleByTimer }: { readonly schedule?: Schedule } = {}) {
    this.#schedule = schedule;
  }

  put(client: Client): void {
    const { id, accepted, rejection } = client;
    if (accepted !== undefined || rejection !== undefined) this.#stopWaiting(id);
    else if (!this.#clients.has(id)) this.#awaitAnswer(id);
    this.#clients.set(id, client);
    this.#notify();
  }

  remove(id: string): void {
    this.#stopWaiting(id);
    if (this.#clients.delete(id)) this.#notify();
  }

  all(): Iterable<Client> {
    return this.#clients.values();
  }

  /** Excludes clients that have just connected and not responded yet. */
  settled(): readonly Client[] {
    return [...this.#clients.values()].filter(({ id }) => !this.#unanswered.has(id));
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Classes of the connected clients. */
  classes(): ReadonlySet<string> {
    return new Set([...this.#clients.values()].flatMap(({ limiterClass }) => limiterClass ?? []));
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #awaitAnswer(id: string): void {
    const cancel = this.#schedule(firstAnswerMs, () => {
      this.#unanswered.delete(id);
      this.#notify();
    });
    this.#unanswered.set(id, cancel);
  }

  #stopWaiting(id: string): void {
    this.#unanswered.get(id)?.();
    this.#unanswered.delete(id);
  }
}

/** The client of one stream, in the registry. */
export class RegisteredClient {
  readonly #registry: ClientRegistry;
  readonly #cache: ResponseCache;
  readonly #nowMs: () => number;
  #client: Client;

  constructor(
    client: Omit<Client, 'accepted' | 'acceptedVersion' | 'rejection' | 'reportsMatches'>,
    options: {
      readonly clients: ClientRegistry;
      readonly cache: ResponseCache;
      readonly nowMs: () => number;
    },
  ) {
    this.#registry = options.clients;
    this.#cache = options.cache;
    this.#nowMs = options.nowMs;
    this.#client = {
      ...client,
      reportsMatches: false,
      accepted: undefined,
      acceptedVersion: undefined,
      rejection: undefined,
    };
    this.#registry.put(this.#client);
  }

  setReportsMatches(): void {
    if (!this.#client.reportsMatches) this.#change({ reportsMatches: true });
  }

  setNames(names: ReadonlySet<string> | undefined): void {
    if (names !== this.#client.names) this.#change({ names });
  }

  accept(snapshot: Snapshot, accepted: KnownResources, rejected: RejectedResources | undefined): void {
    // Without the rejected resources it does not have what this version stands for.
    const acceptedVersion = rejected === undefined ? snapshot.version : `${snapshot.version}-partial`;
    const isSame = acceptedVersion === this.#client.acceptedVersion;
    this.#change({
      accepted: this.#cache.versions(accepted),
      ...{ acceptedVersion, acceptedMs: isSame ? this.#client.acceptedMs : this.#nowMs() },
      rejection: rejected && this.#toRejection(snapshot, rejected),
    });
  }

  reject(snapshot: Snapshot, rejected: RejectedResources): void {
    this.#change({ rejection: this.#toRejection(snapshot, rejected) });
  }

  /** A response was sent, which replaces what was rejected, except for `stillRejected`. */
  sent(stillRejected: RejectedResources | undefined): void {
    const { rejection } = this.#client;
    if (rejection === undefined) return;
    this.#change({
      rejection: stillRejected && {
        ...rejection,
        resources: this.#cache.versions(stillRejected.resources),
        message: stillRejected.message,
      },
    });
  }

  remove(): void {
    this.#registry.remove(this.#client.id);
  }

  #change(changes: Partial<Client>): void {
    this.#client = { ...this.#client, ...changes };
    this.#registry.put(this.#client);
  }

  #toRejection({ version }: Snapshot, { resources, message }: RejectedResources): Rejection {
    return {
      resources: this.#cache.versions(resources),
      snapshotVersion: version,
      message,
      atMs: this.#nowMs(),
    };
  }
}
