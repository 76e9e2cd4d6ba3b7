import { formatYaml } from '@tollgate/yaml/documents';

/** Members of `metadata` that people write; the API server adds others. */
const writtenMetadata = ['namespace', 'name', 'labels', 'annotations'];

/**
 * YAML of a manifest as a person applies it: without `status` and what the API server adds, and
 * with the namespace, which is `default` in a folder otherwise.
 */
export function formatManifest(
  manifest: unknown,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): string {
  const { status: _, metadata, ...rest } = toRecord(manifest);
  const { apiVersion, kind, ...others } = rest;
  const given = { ...toRecord(metadata), namespace, name };
  const written = Object.fromEntries(
    writtenMetadata.flatMap((key) => {
      const value: unknown = Reflect.get(given, key);
      return value === undefined ? [] : [[key, value]];
    }),
  );
  return formatYaml({ apiVersion, kind, metadata: written, ...others });
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  // Manifests are objects with string keys, as parsed from JSON or YAML.
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
