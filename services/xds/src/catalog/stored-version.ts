import { gunzipSync, gzipSync } from 'node:zlib';

/** The last valid version of an object, as it was stored before a restart. */
export interface StoredVersion {
  /** 0 when the source counts generations from the start of the process. */
  readonly generation: number;
  /**
   * Returns the spec, which is not validated.
   *
   * @throws Error when the copy is damaged.
   */
  readonly readSpec: () => unknown;
}

/** Versions from before a restart are older than any other. */
export function isNewer(stored: StoredVersion, last: Pick<StoredVersion, 'generation'> | undefined): boolean {
  return last === undefined || stored.generation > last.generation;
}

/** `status.lastValid` of an object. */
export interface StoredManifest {
  readonly generation: number;
  /** JSON, compressed with gzip, in base64: a schema cannot contain a copy of itself. */
  readonly spec: string;
}

/**
 * Characters of a stored spec: etcd accepts objects of 1.5 MiB, which contain the spec itself, too.
 * Rules compress to about a tenth.
 */
const maxStoredLength = 400_000;

/** Bytes of a spec, which no object of the API server exceeds. */
const maxSpecBytes = 4_000_000;

/**
 * Bytes of a buffer that each compression has until the next major collection: 5,000 statuses in a
 * row kept 16 KiB each, the default.
 */
const chunkSize = 1024;

/** Undefined for a spec that is too large to be stored in the object. */
export function toStoredManifest(generation: number, spec: unknown): StoredManifest | undefined {
  const text = gzipSync(JSON.stringify(spec), { chunkSize }).toString('base64');
  return text.length > maxStoredLength ? undefined : { generation, spec: text };
}

/** Reads `status.lastValid` of a manifest with this generation; undefined without a copy. */
export function readStoredManifest(manifest: unknown, generation: number): StoredManifest | undefined {
  const stored = getField(getField(manifest, 'status'), 'lastValid');
  const [storedGeneration, spec] = [getField(stored, 'generation'), getField(stored, 'spec')];
  if (typeof storedGeneration !== 'number' || typeof spec !== 'string') return undefined;
  // A status that a backup restored belongs to an object that was deleted.
  if (storedGeneration < 1 || storedGeneration > generation) return undefined;
  return { generation: storedGeneration, spec };
}

export function toStoredVersion({ generation, spec }: StoredManifest): StoredVersion {
  return {
    generation,
    readSpec: () =>
      JSON.parse(
        gunzipSync(Buffer.from(spec, 'base64'), { chunkSize, maxOutputLength: maxSpecBytes }).toString(),
      ),
  };
}

/** Reads `status.allowedHosts` of an AccessPolicy with this generation. */
export function readStoredHosts(manifest: unknown, generation: number): readonly string[] {
  const status = getField(manifest, 'status');
  const observed = getField(status, 'observedGeneration');
  // As above, the status may be that of an object that was deleted.
  if (typeof observed !== 'number' || observed > generation) return [];
  return toTexts(getField(status, 'allowedHosts'));
}

/** The texts of a list; empty for anything else. */
export function toTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

function getField(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
