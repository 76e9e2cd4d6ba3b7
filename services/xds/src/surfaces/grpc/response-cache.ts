import { type DeltaDiff, diffResources, type KnownResources } from '../../domain/delta-diff.ts';
import type { DeltaReply } from '../../domain/delta-exchange.ts';
import { rateLimitConfigType as typeUrl } from '../../domain/resource-type.ts';
import type { SnapshotResource } from '../../domain/snapshot.ts';
import { isWhole, type Selection } from '../../domain/subscription.ts';
import { deltaDiscoveryResponseBody, discoveryResponseBody } from './discovery-response-bytes.ts';

type Resources = ReadonlyMap<string, SnapshotResource>;

/**
 * What is derived from a snapshot once, for all streams that want the same of it. It lasts as long as the snapshot, or
 * the selection of the one stream that names what it wants, is in use.
 */
export interface ResponseCache {
  /** Versions by name. */
  versions(resources: KnownResources): ReadonlyMap<string, string>;
  /**
   * The state-of-the-world response, without a nonce. Only that of the latest whole snapshot is remembered: nobody is sent
   * an older one any more, and who names what it wants has a response of its own.
   */
  sotwBody(selection: Selection): Uint8Array;
  diff(known: KnownResources, next: Resources): DeltaDiff;
  /** The incremental response, without a nonce. */
  deltaBody(reply: DeltaReply): Uint8Array;
}

/** Makes an empty cache. */
export function createResponseCache(): ResponseCache {
  let latest: { readonly resources: Resources; readonly body: Uint8Array } | undefined;

  function wholeBody(selection: Selection): Uint8Array {
    const { resources } = selection;
    if (latest?.resources !== resources) latest = { resources, body: encodeSotw(selection) };
    return latest.body;
  }

  const deltaBody = onceFor(
    ({ diff }: DeltaReply) => diff,
    ({ selection, diff }: DeltaReply) =>
      deltaDiscoveryResponseBody({ systemVersionInfo: selection.snapshot.version, typeUrl, ...diff }),
  );
  const versions = onceFor(
    (resources: KnownResources) => resources,
    (resources) => new Map([...resources].map(([name, { version }]) => [name, version])),
  );
  const diffsFrom = onceFor(
    (known: KnownResources) => known,
    (known) =>
      onceFor(
        (next: Resources) => next,
        (next) => diffResources(known, next),
      ),
  );
  return {
    versions,
    sotwBody: (selection) => (isWhole(selection) ? wholeBody(selection) : encodeSotw(selection)),
    deltaBody,
    diff: (known, next) => diffsFrom(known)(next),
  };
}

function encodeSotw({ snapshot, resources }: Selection): Uint8Array {
  return discoveryResponseBody({ versionInfo: snapshot.version, typeUrl, resources: resources.values() });
}

/** Remembers what `make` answers for as long as the object that `keyOf` gives is in use. */
function onceFor<Input, Output>(
  keyOf: (input: Input) => object,
  make: (input: Input) => Output,
): (input: Input) => Output {
  const made = new WeakMap<object, { readonly output: Output }>();
  return (input) => {
    const key = keyOf(input);
    const known = made.get(key);
    if (known !== undefined) return known.output;
    const output = make(input);
    made.set(key, { output });
    return output;
  };
}
