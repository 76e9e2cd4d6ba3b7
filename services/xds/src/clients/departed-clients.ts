import type { LimiterClient } from '../domain/limiter-client.ts';
import type { Schedule } from '../pipeline/schedule.ts';

/** Limiters that left a moment ago, until they are back or are not expected any more. */
export interface DepartedClients {
  /** It has left. One that had accepted nothing is not missed. */
  add(client: LimiterClient): void;
  /** A limiter has come: one that left from the same place under the same name is not missed any more. */
  isBack(client: LimiterClient): void;
  all(): Iterable<LimiterClient>;
}

/** What it takes. */
export interface DepartedClientsDeps {
  readonly schedule: Schedule;
  /** Called when one did not come back. */
  readonly onGone: () => void;
}

/** How long a limiter is expected back. Ours call again after five seconds at most, and once more if that was in vain. */
const graceMs = 10_000;

/** Who comes and goes all the time under other names is not remembered without end. */
const maxDeparted = 10_000;

/** Makes a collection of nobody. */
export function createDepartedClients({ schedule, onGone }: DepartedClientsDeps): DepartedClients {
  /** Each with what takes back its being forgotten; the one that left first comes first. */
  const departed = new Map<LimiterClient, () => void>();
  /** By the name and place of those in `departed`. */
  const byOrigin = new Map<string, Set<LimiterClient>>();

  function forget(client: LimiterClient): void {
    departed.get(client)?.();
    departed.delete(client);
    const origin = originOf(client);
    const alike = byOrigin.get(origin);
    alike?.delete(client);
    if (alike?.size === 0) byOrigin.delete(origin);
  }

  return {
    add(client) {
      if (client.accepted === undefined || departed.size === maxDeparted) return;
      const cancel = schedule(graceMs, () => {
        forget(client);
        onGone();
      });
      departed.set(client, cancel);
      const origin = originOf(client);
      byOrigin.set(origin, (byOrigin.get(origin) ?? new Set()).add(client));
    },
    isBack(client) {
      const [first] = byOrigin.get(originOf(client)) ?? [];
      if (first !== undefined) forget(first);
    },
    all: () => departed.keys(),
  };
}

/** The port is another one with each connection. Several limiters may have one origin: then any of them will do. */
function originOf({ nodeId, peer }: LimiterClient): string {
  return `${peer.slice(0, peer.lastIndexOf(':'))} ${nodeId}`;
}
