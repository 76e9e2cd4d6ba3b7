import type { SourceEvent } from '../domain/config-object.ts';

/** Events that wait to be taken in. Of each object only the last one counts, so that there are never more than objects. */
export interface PendingEvents {
  add(event: SourceEvent): void;
  readonly isEmpty: boolean;
  /** Hands all of them over, and is empty again. */
  take(): SourceEvent[];
}

/** Makes an empty collection. */
export function createPendingEvents(): PendingEvents {
  let list: SourceEvent | undefined;
  /** Those after the list, by the id of the object. */
  let single = new Map<string, SourceEvent>();
  return {
    add(event) {
      if (event.type === 'replaced') {
        list = event;
        single = new Map();
      } else if (event.type === 'changed') single.set(event.object.id, event);
      else single.set(event.id, event);
    },
    get isEmpty() {
      return list === undefined && single.size === 0;
    },
    take() {
      const events = list === undefined ? [...single.values()] : [list, ...single.values()];
      list = undefined;
      single = new Map();
      return events;
    },
  };
}
