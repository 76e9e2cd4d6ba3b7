import type { JsonObject } from './json.ts';

/** The two kinds of metadata of a user. */
export type MetadataKind = 'user_metadata' | 'app_metadata';

/**
 * Most bytes of metadata as JSON. Access tokens carry both, and travel in a header at each request: with these a token has up to
 * 10 KiB, and fits with other headers into the 16 KiB that servers of Node.js take (Envoy takes 60 KiB).
 */
export const maxMetadataBytes: Readonly<Record<MetadataKind, number>> = {
  user_metadata: 4096,
  app_metadata: 2048,
};

/** What metadata become by changes, which are merged in at the top level; a `null` takes a key away. */
export function mergeMetadata(before: JsonObject, changes: JsonObject): JsonObject {
  return Object.fromEntries(
    [
      ...Object.entries(before).filter(([key]) => !Object.hasOwn(changes, key)),
      ...Object.entries(changes),
    ].filter(([, value]) => value !== null),
  );
}

/**
 * What is wrong with the size that metadata get by changes; undefined for nothing. Metadata that were too large before, of another
 * server for example, may become smaller step by step.
 */
export function metadataSizeProblem(
  kind: MetadataKind,
  { before, changes }: { readonly before: JsonObject; readonly changes: JsonObject },
): string | undefined {
  const most = maxMetadataBytes[kind];
  const bytes = metadataBytes(mergeMetadata(before, changes));
  if (bytes <= most || bytes <= metadataBytes(before)) return undefined;
  return `${kind} would have ${bytes} bytes as JSON, and may have ${most}: access tokens carry it; keep what is larger elsewhere`;
}

function metadataBytes(metadata: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(metadata));
}
