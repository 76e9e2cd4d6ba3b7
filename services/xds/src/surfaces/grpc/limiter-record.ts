import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { LimiterClient } from '../../domain/limiter-client.ts';
import type { Selection } from '../../domain/subscription.ts';
import { maxRejectionLength } from './ads-limits.ts';
import type { ResponseCache } from './response-cache.ts';

/** Keeps what the registry knows of one stream up to date. */
export interface LimiterRecord {
  /** It asks for these names from now on; undefined for all. */
  asksFor(names: ReadonlySet<string> | undefined): void;
  accepted(selection: Selection): void;
  rejected(selection: Selection, message: string): void;
  /** Something was sent: what was rejected before has got its replacement. */
  sent(): void;
  remove(): void;
}

/** What it takes. */
export interface LimiterRecordDeps {
  readonly clients: ClientRegistry;
  readonly cache: ResponseCache;
  readonly nowMs: () => number;
}

/** Puts a client in the registry that has not acknowledged anything yet. */
export function createLimiterRecord(
  { clients, cache, nowMs }: LimiterRecordDeps,
  identity: Pick<LimiterClient, 'id' | 'nodeId' | 'peer' | 'protocol' | 'connectedMs' | 'names'>,
): LimiterRecord {
  let client: LimiterClient = {
    ...identity,
    accepted: undefined,
    acceptedVersion: undefined,
    rejection: undefined,
  };
  const change = (news: Partial<LimiterClient>): void => {
    client = { ...client, ...news };
    clients.put(client);
  };
  change({});
  return {
    asksFor(names) {
      if (names !== client.names) change({ names });
    },
    accepted({ snapshot, resources }) {
      change({
        accepted: cache.versions(resources),
        acceptedVersion: snapshot.version,
        rejection: undefined,
      });
    },
    rejected({ snapshot, resources }, message) {
      const refused = cache.versions(resources);
      const rejection = { refused, snapshotVersion: snapshot.version, message, atMs: nowMs() };
      change({ rejection });
    },
    sent() {
      if (client.rejection !== undefined) change({ rejection: undefined });
    },
    remove: () => clients.remove(client.id),
  };
}

/** What a client says of its rejection, cut to a bearable length. */
export function rejectionMessage(message: string): string {
  // Well-formed again after the cut, which may have gone through a character.
  return message.slice(0, maxRejectionLength).toWellFormed() || 'rejected without a message';
}
