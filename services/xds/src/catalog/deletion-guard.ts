import type { ConfigObject, SourceEvent } from './source.ts';

export interface DeletionGuardOptions {
  /** Shortest time from a deletion to its effect. */
  readonly delayMs: number;
  /** Deletions within this time are counted together. */
  readonly windowMs: number;
  /** More domains than this, and more than the share of all, must vanish to be held back. */
  readonly domains: number;
  /** Share of all domains, from 0 to 1. */
  readonly share: number;
  /** Whether the last domain may vanish. */
  readonly allowEmpty: boolean;
  /** Lets held deletions through, for the status of the objects. */
  readonly command: string;
  /** Names what is counted in messages. Default domains. */
  readonly noun?: { readonly one: string; readonly many: string };
}

/** An object whose deletion may be held back. */
export interface GuardedObject {
  readonly id: string;
  /** Why the object stays in force although it was deleted; absent for one that exists. */
  readonly heldBack?: string;
}

/** The part of a catalog that the guard uses. Policies count as domains of one object each. */
export interface GuardedCatalog<O extends GuardedObject> {
  readonly ids: Iterable<string>;
  readonly domainCount: number;
  find(id: string): O | undefined;
  /** Class and domain of an object; undefined if its deletion changes nothing. */
  keyOf(object: O): string | undefined;
  /** Number of objects of a class and domain with a valid version. */
  countMembers(key: string): number;
}

export type GuardedEvent<O extends GuardedObject> =
  | SourceEvent
  /** A deleted object stays in force, or comes into force again. */
  | { readonly type: 'restored'; readonly object: O };

/** Deletions that are held back. */
export interface Hold<O extends GuardedObject> {
  /** Why. */
  readonly reason: string;
  /** Deleted objects whose rules stay in force, by id. */
  readonly objects: ReadonlyMap<string, O>;
}

interface Deletion<O extends GuardedObject> {
  readonly object: O;
  /** Class and domain. */
  readonly domain: string;
  readonly atMs: number;
  /** A list did not contain the object. Otherwise its deletion was an event. */
  readonly byList: boolean;
}

/**
 * Holds deletions back when so many domains vanish that it is more likely a mistake than an
 * intention: a deleted CRD, a volume that is not mounted. A deletion takes effect after a short
 * delay, during which others are counted; when many domains vanish, after the whole window, so that
 * few limits are lifted before the share is known. Limits lifted within the window return.
 *
 * Without I/O, clock and logger. `nowMs` is of a monotonic clock.
 */
export class DeletionGuard<O extends GuardedObject> {
  readonly #options: DeletionGuardOptions;
  readonly #catalog: GuardedCatalog<O>;
  #hasListed: boolean = false;
  /** Deletions without effect yet, by id. */
  readonly #pending = new Map<string, Deletion<O>>();
  /** Deletions that took effect within the window, by id. */
  readonly #recent = new Map<string, Deletion<O>>();
  #hold: { readonly reason: string; readonly objects: Map<string, O> } | undefined;
  /** Deletions until then are part of what an operator let through. */
  #allowedUntilMs = Number.NEGATIVE_INFINITY;
  #postponedToMs = Number.NEGATIVE_INFINITY;

  constructor(catalog: GuardedCatalog<O>, options: DeletionGuardOptions) {
    this.#catalog = catalog;
    this.#options = options;
  }

  get #noun() {
    return this.#options.noun ?? { one: 'domain', many: 'domains' };
  }

  /** Undefined while nothing is held back. */
  get hold(): Hold<O> | undefined {
    return this.#hold;
  }

  /** Whether an object is deleted, although its rules are still in force. */
  isDeleted(id: string): boolean {
    return this.#pending.has(id) || this.#hold?.objects.has(id) === true;
  }

  /** Returns the events for the catalog, without deletions, which it remembers. */
  admit(events: readonly SourceEvent[], nowMs: number): GuardedEvent<O>[] {
    return events.flatMap((event) => this.#admitEvent(event, nowMs));
  }

  /** When `decide` is due; undefined while no deletion waits. */
  nextDueMs(): number | undefined {
    // The map has the order of deletion.
    const [first] = this.#pending.values();
    return first && Math.max(first.atMs + this.#delayMs(), this.#postponedToMs);
  }

  /** Whether a deletion takes effect now, unless there is a reason against it. */
  isDue(nowMs: number): boolean {
    const dueMs = this.nextDueMs();
    return dueMs !== undefined && dueMs <= nowMs;
  }

  /** Nothing is decided before that time, because a reason cannot be found out now. */
  postpone(untilMs: number): void {
    this.#postponedToMs = untilMs;
  }

  /**
   * Returns deletions that take effect, and objects that return. `reason`: why nothing must be
   * deleted, as the source knows it.
   */
  decide(nowMs: number, reason?: string): GuardedEvent<O>[] {
    const { windowMs } = this.#options;
    for (const [id, { atMs }] of this.#recent) if (atMs + windowMs <= nowMs) this.#recent.delete(id);
    if (nowMs < this.#allowedUntilMs) return this.#pass(nowMs, 0);
    if (this.#pending.size === 0) return [];
    const isDue = this.isDue(nowMs);
    const because =
      this.#hold?.reason ?? reason ?? this.#findShare() ?? (isDue ? this.#findEmpty() : undefined);
    if (because !== undefined) return this.#holdBack(because);
    return isDue ? this.#pass(nowMs, this.#delayMs()) : [];
  }

  /** Holds objects that another process, or an earlier one, holds back. Returns their events. */
  adopt(objects: readonly O[], reason: string): GuardedEvent<O>[] {
    // One whose deletion waits would be lifted here alone.
    const unknown = objects.filter(({ id }) => this.#pending.has(id) || this.#catalog.find(id) === undefined);
    if (unknown.length === 0) return [];
    for (const { id } of unknown) this.#pending.delete(id);
    return this.#keep(unknown, reason);
  }

  /** Lets everything through that is held back, and deletions of the next `windowMs`. */
  release(nowMs: number): GuardedEvent<O>[] {
    const ids = [...(this.#hold?.objects.keys() ?? [])];
    this.#hold = undefined;
    this.#recent.clear();
    this.#allowedUntilMs = nowMs + this.#options.windowMs;
    return [...ids.map((id): GuardedEvent<O> => ({ type: 'deleted', id })), ...this.#pass(nowMs, 0)];
  }

  #admitEvent(event: SourceEvent, nowMs: number): readonly GuardedEvent<O>[] {
    if (event.type === 'changed') {
      this.#forget(event.object.id);
      return [event];
    }
    if (event.type === 'deleted') {
      return this.#remember(event.id, { atMs: nowMs, byList: event.byList === true });
    }
    return this.#hasListed ? this.#admitList(event.objects, nowMs) : this.#admitFirstList(event);
  }

  #admitFirstList(event: SourceEvent & { type: 'replaced' }): readonly GuardedEvent<O>[] {
    this.#hasListed = true;
    for (const { id } of event.objects) this.#forget(id);
    return [event, ...this.#restored()];
  }

  #admitList(objects: readonly ConfigObject[], atMs: number): readonly GuardedEvent<O>[] {
    const listed = new Set(objects.map(({ id }) => id));
    const events: GuardedEvent<O>[] = [];
    for (const id of this.#catalog.ids)
      if (!listed.has(id)) events.push(...this.#remember(id, { atMs, byList: true }));
    for (const object of objects) {
      this.#forget(object.id);
      events.push({ type: 'changed', object });
    }
    return events;
  }

  /** Returns the deletion when it lifts no limit and takes effect at once. */
  #remember(id: string, { atMs, byList }: Pick<Deletion<O>, 'atMs' | 'byList'>): readonly GuardedEvent<O>[] {
    const object = this.#catalog.find(id);
    const domain = object && this.#catalog.keyOf(object);
    if (object === undefined || domain === undefined) return [{ type: 'deleted', id }];
    if (!this.#pending.has(id) && this.#hold?.objects.has(id) !== true)
      this.#pending.set(id, { object, domain, atMs, byList });
    return [];
  }

  /** The object exists again. */
  #forget(id: string): void {
    this.#pending.delete(id);
    this.#recent.delete(id);
    this.#hold?.objects.delete(id);
    if (this.#hold?.objects.size === 0) this.#hold = undefined;
  }

  #pass(nowMs: number, delayMs: number): GuardedEvent<O>[] {
    const events: GuardedEvent<O>[] = [];
    for (const [id, deletion] of this.#pending) {
      if (deletion.atMs + delayMs > nowMs) continue;
      this.#pending.delete(id);
      this.#recent.set(id, deletion);
      events.push({ type: 'deleted', id });
    }
    return events;
  }

  #holdBack(reason: string): GuardedEvent<O>[] {
    const deletions = [...this.#recent.values(), ...this.#pending.values()];
    this.#recent.clear();
    this.#pending.clear();
    // One that was created again under the same name has ended its deletion.
    return this.#keep(
      deletions.map(({ object }) => object),
      reason,
    );
  }

  #keep(objects: readonly O[], reason: string): GuardedEvent<O>[] {
    this.#hold ??= { reason, objects: new Map() };
    const heldBack = `${this.#hold.reason}; to let deletions through, run: ${this.#options.command}`;
    const kept = objects.map((object) => ({ ...object, heldBack }));
    for (const object of kept) this.#hold.objects.set(object.id, object);
    return kept.map((object) => ({ type: 'restored', object }));
  }

  #restored(): readonly GuardedEvent<O>[] {
    return [...(this.#hold?.objects.values() ?? [])].map((object) => ({ type: 'restored', object }));
  }

  #delayMs(): number {
    const { delayMs, windowMs, domains } = this.#options;
    return this.#findVanished().size > domains ? windowMs : delayMs;
  }

  #findShare(): string | undefined {
    const { domains, share, windowMs } = this.#options;
    const vanished = this.#findVanished();
    const { size } = vanished;
    const all = this.#countLeft(vanished) + size;
    if (size <= domains || size <= share * all) return undefined;
    return `${size} of ${all} ${this.#noun.many} vanished within ${windowMs / 1_000} s`;
  }

  #findEmpty(): string | undefined {
    const vanished = this.#findVanished();
    if (vanished.size === 0 || this.#countLeft(vanished) > 0) return undefined;
    if ([...this.#pending.values()].some(({ byList }) => byList))
      return `the source lists no ${this.#noun.one} any more`;
    return this.#options.allowEmpty ? undefined : `no ${this.#noun.one} is left, and XDS_ALLOW_EMPTY=false`;
  }

  /** Domains without another object. */
  #findVanished(): ReadonlySet<string> {
    const waiting = new Map<string, number>();
    for (const { domain } of this.#pending.values()) waiting.set(domain, (waiting.get(domain) ?? 0) + 1);
    const domains = [...waiting.keys(), ...[...this.#recent.values()].map(({ domain }) => domain)];
    return new Set(
      domains.filter((domain) => this.#catalog.countMembers(domain) === (waiting.get(domain) ?? 0)),
    );
  }

  #countLeft(vanished: ReadonlySet<string>): number {
    const waiting = [...vanished].filter((domain) => this.#catalog.countMembers(domain) > 0);
    return this.#catalog.domainCount - waiting.length;
  }
}
