import type { ManifestObject } from '../support/manifest-object.ts';
import type { Reference } from './pod-spec.ts';

/** What a Pod finds where it runs. */
export interface PodSurroundings {
  /** Its `metadata`, by path: `metadata.name`, `metadata.namespace`. */
  readonly fields: Readonly<Record<string, string>>;
  /** What a Secret holds; undefined when there is none and it may be missing. @throws Error when it may not. */
  secret(reference: Reference): KeyValues | undefined;
  /** What a ConfigMap holds, in the same way. */
  configMap(reference: Reference): KeyValues | undefined;
  /** A token of its service account, for the API server. */
  readonly token: string;
}

type KeyValues = Readonly<Record<string, string>>;

/** The surroundings of a Pod among objects of its namespace, as the API server has them. */
export function podSurroundings(
  objects: readonly ManifestObject[],
  { token, ...metadata }: { readonly name: string; readonly namespace: string; readonly token: string },
): PodSurroundings {
  function dataOf(kind: string, { name, optional = false }: Reference): KeyValues | undefined {
    const object = objects.find((one) => one.kind === kind && one.metadata.name === name);
    if (object === undefined && !optional) throw new Error(`${metadata.name} needs the ${kind} ${name}`);
    // Parsed boundary: of these kinds the API server takes nothing else.
    return object === undefined ? undefined : ((object.data ?? {}) as KeyValues);
  }
  return {
    fields: Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, value])),
    token,
    configMap: (reference) => dataOf('ConfigMap', reference),
    secret(reference) {
      const data = dataOf('Secret', reference);
      return data && Object.fromEntries(Object.entries(data).map(([key, value]) => [key, decode(value)]));
    },
  };
}

/** The field of a Pod. @throws Error for one that a node is not asked for here. */
export function fieldOf({ fields }: PodSurroundings, path: string): string {
  const value = fields[path];
  if (value === undefined) throw new Error(`nothing is known of the field ${path} of a Pod`);
  return value;
}

const decode = (value: string): string => Buffer.from(value, 'base64').toString();
