import type { ManifestObject } from './manifest-object.ts';

/** What Secrets and ConfigMaps hold, by their names. */
export interface ClusterFiles {
  /** @throws Error when there is none of that name. */
  secret(name: string): Readonly<Record<string, string>>;
  /** Undefined when there is none of that name. */
  optionalSecret(name: string): Readonly<Record<string, string>> | undefined;
  /** @throws Error when there is none of that name. */
  configMap(name: string): Readonly<Record<string, string>>;
}

/** Those that manifests have, and the Secrets that an operator would have made. */
export function clusterFiles(
  objects: readonly ManifestObject[],
  secrets: Readonly<Record<string, Readonly<Record<string, string>>>>,
): ClusterFiles {
  const find = (kind: string, field: 'data' | 'stringData', name: string) => {
    const object = objects.find((one) => one.kind === kind && one.metadata.name === name);
    // The API server has the last word on it, in another test.
    return object?.[field] as Readonly<Record<string, string>> | undefined;
  };
  const found = <T>(data: T | undefined, what: string): T => {
    if (data === undefined) throw new Error(`there is no ${what}`);
    return data;
  };
  const optionalSecret = (name: string) => secrets[name] ?? find('Secret', 'stringData', name);
  return {
    optionalSecret,
    secret: (name) => found(optionalSecret(name), `Secret ${name}`),
    configMap: (name) => found(find('ConfigMap', 'data', name), `ConfigMap ${name}`),
  };
}
