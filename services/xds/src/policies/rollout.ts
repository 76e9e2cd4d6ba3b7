import type { Schedule } from '@tollgate/kit/time';
import type { DescriptorSpec, RuleDocument } from '@tollgate/rules/rule-document';
import type { Client, ClientRegistry } from '../ads/clients.ts';
import {
  type CommonSnapshot,
  SnapshotBuilder,
  type SnapshotResource,
  type SnapshotStore,
} from '../catalog/snapshot.ts';
import type { Context } from '../context.ts';

/** Clients of one kind and what they get. */
export interface RolloutClients {
  readonly snapshots: SnapshotStore;
  readonly clients: ClientRegistry;
}

interface RolloutOptions {
  readonly limiters: RolloutClients;
  readonly authServers: RolloutClients;
  /** Sets the rules that limiters get in addition to others, at once or when those were read. */
  readonly setRules: (rules: CommonSnapshot) => void;
  readonly schedule: Schedule;
}

type Documents = ReadonlyMap<string, RuleDocument>;

/** Clients that do not answer delay a change for this time. They answer within milliseconds. */
const maxWaitMs = 2_000;

/**
 * Publishes policies in an order in which no limit is missing: limiters get new rules before auth
 * servers ask for them, and lose old ones after auth servers have stopped to.
 */
export class Rollout {
  readonly #context: Context;
  readonly #options: RolloutOptions;
  readonly #builder = new SnapshotBuilder();
  /** Rules that limiters get. */
  #documents: Documents = new Map();
  /** Ends all waiting. */
  readonly #closing = new AbortController();

  constructor(context: Context, options: RolloutOptions) {
    this.#context = context;
    this.#options = options;
  }

  close(): void {
    this.#closing.abort();
  }

  /** Without access, only rules are added. Runs must not overlap. */
  async publish(access: CommonSnapshot | undefined, documents: Documents): Promise<void> {
    const { limiters, authServers } = this.#options;
    const all = mergeDocuments(documents, this.#documents);
    const rules = this.#setRules(all);
    await this.#served(rules);
    await this.#answered('limiters', limiters, { resources: rules.resources, removed: [] });
    if (this.#closing.signal.aborted || access === undefined) return;
    const before = [...(authServers.snapshots.current()?.resources.keys() ?? [])];
    authServers.snapshots.set(access);
    if (all === documents) return;
    const { resources } = access;
    const removed = before.filter((name) => !resources.has(name));
    await this.#answered('auth servers', authServers, { resources, removed });
    if (!this.#closing.signal.aborted) this.#setRules(documents);
  }

  #setRules(documents: Documents): CommonSnapshot {
    for (const [domain, document] of documents)
      if (this.#documents.get(domain) !== document) this.#builder.put(domain, document);
    for (const domain of this.#documents.keys()) if (!documents.has(domain)) this.#builder.remove(domain);
    this.#documents = documents;
    const rules = this.#builder.build();
    this.#options.setRules(rules);
    return rules;
  }

  /** Limiters get no rules until all of their sources were read. */
  async #served({ resources }: CommonSnapshot): Promise<void> {
    const { snapshots } = this.#options.limiters;
    const isServed = () => {
      const served = snapshots.current()?.resources;
      return [...resources.values()].every(({ name, version }) => served?.get(name)?.version === version);
    };
    await this.#until(isServed, (check) => snapshots.onChange(check));
  }

  async #answered(kind: string, { clients, snapshots }: RolloutClients, expected: Expected): Promise<void> {
    const isAnswered = () =>
      clients.settled().every((client) => {
        const version = snapshots.currentOf(client.limiterClass)?.version;
        return client.rejection?.snapshotVersion === version || hasAccepted(client, expected);
      });
    const isInTime = await this.#until(isAnswered, (check) => clients.onChange(check), maxWaitMs);
    if (!isInTime)
      this.#context.logger.warn(
        { clients: kind, waitedMs: maxWaitMs },
        'clients have not answered, publishing policies without them',
      );
  }

  /** Returns whether it came true in time. */
  async #until(
    isTrue: () => boolean,
    subscribe: (check: () => void) => () => void,
    timeoutMs?: number,
  ): Promise<boolean> {
    const { signal } = this.#closing;
    if (isTrue() || signal.aborted) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const unsubscribe = subscribe(() => isTrue() && resolve(true));
    const cancel =
      timeoutMs === undefined ? undefined : this.#options.schedule(timeoutMs, () => resolve(false));
    const onAbort = () => resolve(true);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await promise;
    } finally {
      unsubscribe();
      cancel?.();
      signal.removeEventListener('abort', onAbort);
    }
  }
}

interface Expected {
  readonly resources: CommonSnapshot['resources'];
  /** Names of resources that a client must no longer have. */
  readonly removed: readonly string[];
}

function hasAccepted({ accepted, rejection, names }: Client, { resources, removed }: Expected): boolean {
  // It gets the newest resources first.
  if (accepted === undefined && rejection === undefined) return true;
  const isAnswered = ({ name, version }: SnapshotResource) =>
    names?.has(name) === false ||
    accepted?.get(name) === version ||
    rejection?.resources.get(name) === version;
  return [...resources.values()].every(isAnswered) && removed.every((name) => accepted?.has(name) !== true);
}

/** Adds what only the earlier rules have. Returns `next` itself when that is nothing. */
function mergeDocuments(next: Documents, before: Documents): Documents {
  const merged = new Map(next);
  for (const [domain, old] of before) {
    const document = next.get(domain);
    if (document === undefined) merged.set(domain, old);
    else if (document !== old) {
      const descriptors = mergeDescriptors(document.descriptors, old.descriptors);
      if (descriptors !== document.descriptors) merged.set(domain, { ...document, descriptors });
    }
  }
  const isSame = merged.size === next.size && [...next].every(([key, value]) => merged.get(key) === value);
  return isSame ? next : merged;
}

type Descriptors = readonly DescriptorSpec[];

function mergeDescriptors(next: Descriptors, before: Descriptors): Descriptors {
  const toId = ({ key, value }: DescriptorSpec): string => JSON.stringify([key, value]);
  const old = new Map(before.map((descriptor) => [toId(descriptor), descriptor]));
  const merged = next.map((descriptor) => {
    const known = old.get(toId(descriptor));
    old.delete(toId(descriptor));
    return known === undefined ? descriptor : mergeDescriptor(descriptor, known);
  });
  const isSame = old.size === 0 && merged.every((descriptor, index) => descriptor === next[index]);
  return isSame ? next : [...merged, ...old.values()];
}

function mergeDescriptor(next: DescriptorSpec, old: DescriptorSpec): DescriptorSpec {
  const own = next.descriptors ?? [];
  const descriptors = mergeDescriptors(own, old.descriptors ?? []);
  const addsLimit = next.rateLimit === undefined && old.rateLimit !== undefined;
  if (descriptors === own && !addsLimit) return next;
  const { rateLimit, shadowMode } = addsLimit ? old : next;
  return { ...next, descriptors, rateLimit, shadowMode };
}
