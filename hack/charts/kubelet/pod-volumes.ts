import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FileSource, PodSpec, VolumeSpec } from './pod-spec.ts';
import { fieldOf, type PodSurroundings } from './pod-surroundings.ts';

/** Files by their names. */
type Files = Record<string, string>;

/** Of files when a volume says nothing. */
const defaultMode = 0o644;

/** The token of the service account, where clients look for it. The API server adds it to Pods that take one. */
export const serviceAccountVolume = {
  volume: {
    name: 'kube-api-access',
    projected: {
      sources: [
        { serviceAccountToken: { path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt' } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
      ],
    },
  },
  mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
} as const;

/**
 * Makes a folder for each volume, below `folder`, and answers which. Files lead through a link, as a kubelet has it, which
 * replaces all of them at once; they belong to the group of the Pod.
 */
export function writeVolumes(
  spec: PodSpec,
  folder: string,
  surroundings: PodSurroundings,
): ReadonlyMap<string, string> {
  const group = spec.securityContext?.fsGroup;
  return new Map(
    (spec.volumes ?? []).map((volume) => {
      const path = join(folder, volume.name);
      mkdirSync(path);
      if (volume.emptyDir === undefined) writeFiles(path, volume, { group, surroundings });
      // Whoever the container runs as.
      else chmodSync(path, 0o777);
      return [volume.name, path];
    }),
  );
}

function writeFiles(
  path: string,
  volume: VolumeSpec,
  { group, surroundings }: { readonly group: number | undefined; readonly surroundings: PodSurroundings },
): void {
  const { projected, secret, configMap } = volume;
  const sources: readonly FileSource[] = projected?.sources ?? [volume];
  const files = Object.assign({}, ...sources.map((source) => filesOf(source, surroundings))) as Files;
  const mode = projected?.defaultMode ?? secret?.defaultMode ?? configMap?.defaultMode ?? defaultMode;
  mkdirSync(join(path, '..1'));
  symlinkSync('..1', join(path, '..data'));
  for (const [name, text] of Object.entries(files)) {
    const file = join(path, '..1', name);
    writeFileSync(file, text);
    chmodSync(file, mode);
    // Nobody else may give files away; then the container runs as whoever they belong to.
    if (process.getuid?.() === 0 && group !== undefined) chownSync(file, 0, group);
    symlinkSync(join('..data', name), join(path, name));
  }
}

function filesOf(source: FileSource, surroundings: PodSurroundings): Files {
  const { secret, configMap, serviceAccountToken, downwardAPI } = source;
  if (secret !== undefined) {
    const name = secret.secretName ?? secret.name ?? '';
    return chosen(secret.items, surroundings.secret({ ...secret, name }));
  }
  if (configMap !== undefined) return chosen(configMap.items, surroundings.configMap(configMap));
  if (serviceAccountToken !== undefined) return { [serviceAccountToken.path]: surroundings.token };
  if (downwardAPI === undefined) throw new Error(`nothing is known of ${JSON.stringify(source)}`);
  return Object.fromEntries(
    downwardAPI.items.map(({ path, fieldRef }) => [path, fieldOf(surroundings, fieldRef.fieldPath)]),
  );
}

function chosen(
  items: readonly { readonly key: string; readonly path: string }[] | undefined,
  data: Readonly<Record<string, string>> = {},
): Files {
  if (items === undefined) return data;
  return Object.fromEntries(
    items.map(({ key, path }) => {
      const text = data[key];
      if (text === undefined) throw new Error(`there is no key ${key} for the file ${path}`);
      return [path, text];
    }),
  );
}
