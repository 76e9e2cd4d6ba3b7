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
  const waiting = new Set<() => void>();
  let inFlight = 0;

  function wakeWaiting(): void {
    // In the order in which they came; those that find no room again go to the end, behind those not woken.
    for (const retry of [...waiting]) {
      if (inFlight >= maxBytes) return;
      waiting.delete(retry);
      retry();
    }
  }

  return {
    enter(bytes, retry) {
      if (inFlight > 0 && inFlight + bytes > maxBytes) {
        waiting.add(retry);
        return undefined;
      }
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
