import type { SourceEvent } from './source.ts';

/** Events to be applied. Keeps only the last one per object. */
export class PendingEvents {
  #list: (SourceEvent & { readonly type: 'replaced' }) | undefined;
  /** Events after the list, by id. */
  #byId = new Map<string, SourceEvent>();

  get isEmpty(): boolean {
    return this.#list === undefined && this.#byId.size === 0;
  }

  add(event: SourceEvent): void {
    if (event.type === 'replaced') {
      const before = event.before ?? this.#list?.before;
      this.#list = before === undefined ? event : { ...event, before };
      this.#byId = new Map();
    } else this.#byId.set(event.type === 'changed' ? event.object.id : event.id, event);
  }

  /** Whether the last event of an object is its deletion; undefined without an event. */
  isDeleted(id: string): boolean | undefined {
    const event = this.#byId.get(id);
    return event && event.type === 'deleted';
  }

  take(): SourceEvent[] {
    const events = [...(this.#list === undefined ? [] : [this.#list]), ...this.#byId.values()];
    this.#list = undefined;
    this.#byId = new Map();
    return events;
  }

  /** Puts events back that are older than those added since. */
  putBack(events: readonly SourceEvent[]): void {
    const newer = this.take();
    for (const event of [...events, ...newer]) this.add(event);
  }
}
