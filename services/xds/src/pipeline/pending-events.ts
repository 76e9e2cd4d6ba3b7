import type { SourceEvent } from '../domain/config-object.ts';

/** Events that wait to be taken in. Of each object only the last one counts, so that there are never more than objects. */
export interface PendingEvents {
  add(event: SourceEvent): void;
  readonly isEmpty: boolean;
  /** Hands all of them over, and is empty again. */
  take(): SourceEvent[];
  /** Takes events back that were handed over, as older than those that have come since. */
  putBack(events: readonly SourceEvent[]): void;
}

/** Makes an empty collection. */
export function createPendingEvents(): PendingEvents {
  let list: SourceEvent | undefined;
  /** Those after the list, by the id of the object. */
  let single = new Map<string, SourceEvent>();

  function add(event: SourceEvent): void {
    if (event.type === 'replaced') {
      list = event;
      single = new Map();
    } else if (event.type === 'changed') single.set(event.object.id, event);
    else single.set(event.id, event);
  }

  function take(): SourceEvent[] {
    const events = list === undefined ? [...single.values()] : [list, ...single.values()];
    list = undefined;
    single = new Map();
    return events;
  }

  return {
    add,
    get isEmpty() {
      return list === undefined && single.size === 0;
    },
    take,
    putBack(events) {
      const newer = take();
      for (const event of events) add(event);
      for (const event of newer) add(event);
    },
  };
}
