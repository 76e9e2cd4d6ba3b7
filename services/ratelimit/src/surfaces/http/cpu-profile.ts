import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** Watches what the CPU is spent on, for so long or until `signal` aborts, and answers what `.cpuprofile` files hold. */
export async function takeCpuProfile(durationMs: number, signal: AbortSignal): Promise<Profiler.Profile> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await delay(durationMs, undefined, { signal }).catch(() => undefined);
    return (await session.post('Profiler.stop')).profile;
  } finally {
    session.disconnect();
  }
}
