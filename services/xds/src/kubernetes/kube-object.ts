/** What every object of Kubernetes says of itself. */
export interface KubeObject {
  /** `namespace/name`. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Opaque; another one for each change. */
  readonly resourceVersion: string;
  /** 0 where the kind has none. */
  readonly generation: number;
  /** Unix time in milliseconds; 0 where the object does not tell. */
  readonly createdMs: number;
  /** The decoded JSON. */
  readonly manifest: Readonly<Record<string, unknown>>;
}

/**
 * Reads an object from the API server's JSON. Bookkeeping that repeats the spec (`managedFields`, kubectl's
 * last-applied annotation) is left out of the manifest: it takes more memory than all the rest.
 *
 * @throws Error when it has no name, uid or resourceVersion: then it is no object of an API server.
 */
export function readKubeObject(value: unknown): KubeObject {
  const manifest = requireRecord(value, 'an object');
  const metadata = requireRecord(manifest.metadata, 'metadata');
  const text = (key: string): string => {
    const field = metadata[key];
    if (typeof field !== 'string' || field === '') throw new Error(`an object without metadata.${key}`);
    return field;
  };
  const name = text('name');
  const namespace = typeof metadata.namespace === 'string' ? metadata.namespace : '';
  const { generation, creationTimestamp } = metadata;
  return {
    id: `${namespace}/${name}`,
    namespace,
    name,
    uid: text('uid'),
    resourceVersion: text('resourceVersion'),
    generation: typeof generation === 'number' ? generation : 0,
    createdMs: typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) || 0 : 0,
    manifest: { ...manifest, metadata: withoutBookkeeping(metadata) },
  };
}

/** The value as an object of JSON. Throws an Error that names `what` for anything else. */
export function requireRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`the API server sent no ${what}`);
  }
  // An object that is no array, checked just above: JSON has string keys and unknown values.
  return value as Readonly<Record<string, unknown>>;
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

function withoutBookkeeping(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { managedFields: _, annotations, ...rest } = metadata;
  if (typeof annotations !== 'object' || annotations === null) return rest;
  const kept = Object.entries(annotations).filter(([key]) => key !== lastApplied);
  return kept.length === 0 ? rest : { ...rest, annotations: Object.fromEntries(kept) };
}
