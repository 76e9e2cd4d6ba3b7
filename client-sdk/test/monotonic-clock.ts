/**
 * Lets a test advance monotonic time, which a correction of the wall clock does not change. The
 * machine's own goes on.
 */
export function monotonicClock(t: { teardown(restore: () => void): void }): {
  advance(seconds: number): void;
} {
  let offsetMs = 0;
  const machine = performance.now.bind(performance);
  Object.defineProperty(performance, 'now', { configurable: true, value: () => machine() + offsetMs });
  t.teardown(() => void Reflect.deleteProperty(performance, 'now'));
  return {
    advance(seconds) {
      offsetMs += seconds * 1000;
    },
  };
}
