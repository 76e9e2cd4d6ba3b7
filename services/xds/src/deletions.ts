import { getErrorMessage } from '@tollgate/kit/errors';
import { runSteps, type Schedule } from '@tollgate/kit/time';
import {
  DeletionGuard,
  type DeletionGuardOptions,
  type GuardedCatalog,
  type GuardedEvent,
  type GuardedObject,
} from './catalog/deletion-guard.ts';
import type {
  ConfigObject,
  HeldObject,
  HoldStore,
  ResourceSource,
  SourceEvent,
  StoredHold,
} from './catalog/source.ts';
import { type CatalogObject, validateObject } from './catalog/validation.ts';
import type { Context } from './context.ts';
import { rateLimitConfigs } from './kube/resources.ts';

/** Limits of the deletion guard, and where it stores what it holds back. */
export interface DeletionOptions extends Omit<DeletionGuardOptions, 'allowEmpty' | 'command' | 'noun'> {
  readonly store: HoldStore;
}

interface Parts<O extends GuardedObject>
  extends DeletionOptions,
    Pick<DeletionGuardOptions, 'allowEmpty' | 'noun'> {
  readonly catalog: GuardedCatalog<O>;
  /** How objects that are held back are stored. */
  readonly form: HeldForm<O>;
  /** Sets the number of domains that are held back. */
  readonly setHeld: (domains: number) => void;
  readonly source: Pick<ResourceSource, 'findDeletion'>;
  readonly schedule: Schedule;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** Events for the catalog are due. */
  readonly onDue: () => void;
}

interface ApplyOptions<O extends GuardedObject, Change> {
  /** Whether no events were applied before. */
  readonly isFirst: boolean;
  readonly apply: (events: readonly GuardedEvent<O>[]) => Promise<Change>;
}

/** Converts objects into those of a store, and back. */
export interface HeldForm<O extends GuardedObject> {
  toHeld(object: O): HeldObject;
  fromHeld(held: HeldObject): O;
}

/** Deletions that are held back in memory only. */
export const memoryHold: HoldStore = {
  command: 'restart all xDS servers with XDS_DELETION_GUARD=false',
  start: async () => undefined,
  put: () => undefined,
  close: async () => undefined,
};

/** Held deletions as the debug page shows them. */
export interface HoldState {
  readonly reason: string;
  readonly domains: number;
  readonly objects: number;
  /** Lets them through. */
  readonly command: string;
}

/** Delay after a source could not say whether its objects are about to vanish. */
const retryMs = 1_000;

/** Interval of looking whether the objects of a source that lists nothing are gone. */
const goneRetryMs = 5_000;

/** Applies the deletion guard to the events of a source, and stores what is held back. */
export class Deletions<O extends GuardedObject> {
  readonly #context: Context;
  readonly #parts: Parts<O>;
  readonly #guard: DeletionGuard<O>;
  /** Events for the catalog that are not applied yet. */
  readonly #due: GuardedEvent<O>[] = [];
  /** Number of these that are being applied; further ones may be due meanwhile. */
  #admitted = 0;
  #stored: StoredHold = { isAllowed: false, objects: [] };
  #put: readonly HeldObject[] = [];
  #isHolding: boolean = false;
  #cancelClear: (() => void) | undefined;
  #cancelReplace: (() => void) | undefined;

  constructor(context: Context, parts: Parts<O>) {
    this.#context = context;
    this.#parts = parts;
    this.#guard = new DeletionGuard(parts.catalog, { ...parts, command: parts.store.command });
  }

  async start(): Promise<void> {
    await this.#parts.store.start((stored) => {
      this.#stored = stored;
      this.#follow(stored);
    });
  }

  async close(): Promise<void> {
    this.#cancelReplace?.();
    this.#cancelClear?.();
    await this.#parts.store.close();
  }

  /** Whether an object is deleted, although its rules are still in force. */
  isDeleted(id: string): boolean {
    const due = this.#due.findLast((event) => concerns(event, id));
    return due === undefined ? this.#guard.isDeleted(id) : due.type === 'deleted';
  }

  /** Undefined while nothing is held back. */
  state(): HoldState | undefined {
    const { hold } = this.#guard;
    if (hold === undefined) return undefined;
    const { reason, objects } = hold;
    const { store, catalog } = this.#parts;
    const domains = new Set([...objects.values()].map((object) => catalog.keyOf(object))).size;
    return { reason, domains, objects: objects.size, command: store.command };
  }

  /**
   * With the CRD, all objects are gone, and the source has nothing to list. Calls `replace` when
   * held objects are to be served nevertheless, unless `isOver`: a list must not be replaced.
   */
  async replaceGone(isOver: () => boolean, replace: () => void): Promise<void> {
    if (isOver()) return;
    const { source, schedule } = this.#parts;
    const finding = this.#guard.hold === undefined ? undefined : source.findDeletion?.();
    const deletion = await finding?.catch(() => undefined);
    if (isOver()) return;
    if (deletion?.isGone === true) replace();
    else this.#cancelReplace = schedule(goneRetryMs, () => void this.replaceGone(isOver, replace));
  }

  /** When `apply` is due without an event, by the monotonic clock. */
  nextDueMs(): number | undefined {
    return this.#due.length > 0 ? this.#parts.now() : this.#guard.nextDueMs();
  }

  /**
   * Applies what the guard lets through. It comes again if `apply` rejects. Before the first
   * events, what was in force before a restart is applied, so that objects which are missing since
   * then count as deleted.
   */
  async apply<Change>(
    events: readonly SourceEvent[],
    { isFirst, apply }: ApplyOptions<O, Change>,
  ): Promise<Change> {
    const [first] = events;
    if (isFirst && first?.type === 'replaced' && first.before !== undefined)
      await apply(await this.#admit([{ type: 'replaced', objects: first.before }]));
    const change = await apply(await this.#admit(events));
    this.#due.splice(0, this.#admitted);
    this.#admitted = 0;
    this.#report();
    return change;
  }

  /** Returns the events for the catalog. They come again until they were applied. */
  async #admit(events: readonly SourceEvent[]): Promise<readonly GuardedEvent<O>[]> {
    const { now } = this.#parts;
    this.#due.push(...this.#guard.admit(events, now()));
    const reason = this.#guard.isDue(now()) ? await this.#findReason() : undefined;
    this.#due.push(...this.#guard.decide(now(), reason));
    if (this.#stored.isAllowed && this.#guard.hold !== undefined) this.#release();
    this.#admitted = this.#due.length;
    return [...this.#due];
  }

  /** Undefined also when the source cannot find out, which postpones the deletions. */
  async #findReason(): Promise<string | undefined> {
    const { source, now } = this.#parts;
    try {
      return (await source.findDeletion?.())?.reason;
    } catch (error) {
      const reason = getErrorMessage(error);
      this.#context.logger.info({ reason }, 'cannot find out whether the CRD is deleted, keeping objects');
      this.#guard.postpone(now() + retryMs);
      return undefined;
    }
  }

  /** Follows another replica, or an earlier process. */
  #follow({ isAllowed, objects }: StoredHold): void {
    const { onDue, windowMs } = this.#parts;
    if (isAllowed) {
      if (this.#guard.hold !== undefined) this.#release();
      // The store may report it again and again.
      else if (this.#cancelClear === undefined) this.#clearAfter(windowMs);
    } else if (objects.length > 0) {
      const reason = 'held back before the restart, or by another replica';
      this.#put = objects;
      this.#due.push(
        ...this.#guard.adopt(
          objects.map((object) => this.#parts.form.fromHeld(object)),
          reason,
        ),
      );
      // The store is cleared when all its objects exist.
      if (this.#due.length === 0) this.#report();
    } else if (this.#guard.hold !== undefined) {
      // Only the annotation lets deletions through: what was removed is stored again.
      this.#put = [];
      this.#report();
    }
    if (this.#due.length > 0) onDue();
  }

  #release(): void {
    const { now, windowMs } = this.#parts;
    this.#context.logger.warn(this.state() ?? {}, 'let held deletions through');
    this.#due.push(...this.#guard.release(now()));
    this.#isHolding = false;
    this.#clearAfter(windowMs);
  }

  /** Other replicas have to see that an operator lets the deletions through. */
  #clearAfter(delayMs: number): void {
    this.#cancelClear?.();
    this.#cancelClear = this.#parts.schedule(delayMs, () => {
      this.#cancelClear = undefined;
      if (this.#guard.hold === undefined) this.#store([]);
    });
  }

  #report(): void {
    const { logger } = this.#context;
    const { hold } = this.#guard;
    const state = this.state();
    this.#parts.setHeld(state?.domains ?? 0);
    if (state !== undefined && !this.#isHolding)
      logger.error(state, 'held deletions back, run the command to let them through');
    if (state === undefined && this.#isHolding) logger.info('all objects of held deletions exist again');
    this.#isHolding = state !== undefined;
    if (hold !== undefined)
      this.#store([...hold.objects.values()].map((object) => this.#parts.form.toHeld(object)));
    else if (this.#cancelClear === undefined && this.#put.length > 0) this.#store([]);
  }

  #store(objects: readonly HeldObject[]): void {
    const isSame =
      objects.length === this.#put.length && objects.every(({ uid }, index) => uid === this.#put[index]?.uid);
    if (isSame && objects.length > 0) return;
    this.#put = objects;
    this.#parts.store.put(objects);
  }
}

function concerns<O extends GuardedObject>(event: GuardedEvent<O>, id: string): boolean {
  if (event.type === 'replaced') return event.objects.some((object) => object.id === id);
  return (event.type === 'deleted' ? event.id : event.object.id) === id;
}

/** RateLimitConfigs in a store. */
export const heldConfigs: HeldForm<CatalogObject> = { toHeld: toHeldObject, fromHeld: toCatalogObject };

function toHeldObject({ id, uid, generation, createdMs, valid }: CatalogObject): HeldObject {
  return { id, uid, generation, createdMs, spec: valid?.spec };
}

function toCatalogObject({ id, spec, ...identity }: HeldObject): CatalogObject {
  const [namespace = '', name = ''] = id.split('/');
  const { apiVersion, kind } = rateLimitConfigs;
  const manifest = { apiVersion, kind, metadata: { namespace, name }, spec };
  const object: ConfigObject = { ...identity, id, namespace, name, order: id, manifest };
  // It was in force; the catalog finds out whether its namespace may claim the domain.
  return { ...runSteps(validateObject(object, undefined)), claim: 'tolerated' };
}
