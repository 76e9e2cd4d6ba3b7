/** Bounds what all streams together have in flight: bytes that were written and not yet read by their clients. */
export interface SendGate {
  /**
   * Takes room for a response; the answered function gives it back. Undefined when there is no room: `retry` is called,
   * once, when there may be. The response is not held meanwhile, so that the latest is sent in the end.
   */
  enter(bytes: number, retry: () => void): (() => void) | undefined;
  /** Forgets one who waits. */
  leave(retry: () => void): void;
}

/** Makes a gate; one response is let through whatever its size. */
export function createSendGate(maxBytes: number): SendGate {
  /** Bytes wanted, in the order in which they were. */
  const waiting = new Map<() => void, number>();
  let inFlight = 0;
  /** Whether one who has waited is being called. */
  let isTurnOfWaiting = false;
  const hasRoom = (bytes: number): boolean => inFlight === 0 || inFlight + bytes <= maxBytes;

  function wakeWaiting(): void {
    for (const [retry, bytes] of [...waiting]) {
      if (!hasRoom(bytes)) return;
      if (!waiting.delete(retry)) continue;
      isTurnOfWaiting = true;
      retry();
      isTurnOfWaiting = false;
    }
  }

  return {
    enter(bytes, retry) {
      // Nobody is let past one who waits: a large response would wait for ever.
      const isPast = waiting.size > 0 && !isTurnOfWaiting;
      if (isPast || !hasRoom(bytes)) {
        waiting.set(retry, bytes);
        return undefined;
      }
      waiting.delete(retry);
      inFlight += bytes;
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        inFlight -= bytes;
        wakeWaiting();
      };
    },
    leave: (retry) => void waiting.delete(retry),
  };
}
