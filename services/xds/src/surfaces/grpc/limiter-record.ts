import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { KnownResources } from '../../domain/delta-diff.ts';
import type { LimiterClient, Rejection } from '../../domain/limiter-client.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Refusal } from '../../domain/sotw-exchange.ts';
import type { ResponseCache } from './response-cache.ts';

/** Keeps what the registry knows of one stream up to date. */
export interface LimiterRecord {
  /** It asks for these names from now on; undefined for all. */
  asksFor(names: ReadonlySet<string> | undefined): void;
  /** It has accepted a response to this snapshot; `refusal` is what it still rejects of earlier ones. */
  accepted(snapshot: Snapshot, has: KnownResources, refusal: Refusal | undefined): void;
  rejected(snapshot: Snapshot, refusal: Refusal): void;
  /** Something was sent: what was rejected before has got its replacement, but for `refusal`. */
  sent(refusal: Refusal | undefined): void;
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
  identity: Pick<LimiterClient, 'id' | 'nodeId' | 'identity' | 'peer' | 'protocol' | 'connectedMs' | 'names'>,
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
  const rejectionOf = ({ version }: Snapshot, { refused, message }: Refusal): Rejection => ({
    refused: cache.versions(refused),
    snapshotVersion: version,
    message,
    atMs: nowMs(),
  });
  change({});
  return {
    asksFor(names) {
      if (names !== client.names) change({ names });
    },
    accepted(snapshot, has, refusal) {
      change({
        accepted: cache.versions(has),
        // With some resources rejected, it does not have what others know under the version of the snapshot.
        acceptedVersion: refusal === undefined ? snapshot.version : `${snapshot.version}-partial`,
        rejection: refusal && rejectionOf(snapshot, refusal),
      });
    },
    rejected: (snapshot, refusal) => change({ rejection: rejectionOf(snapshot, refusal) }),
    sent(refusal) {
      const { rejection } = client;
      if (rejection === undefined) return;
      const left = refusal && {
        ...rejection,
        refused: cache.versions(refusal.refused),
        message: refusal.message,
      };
      change({ rejection: left });
    },
    remove: () => clients.remove(client.id),
  };
}
