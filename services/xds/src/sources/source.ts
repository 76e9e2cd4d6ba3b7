/** A RateLimitConfig as its source has it, decoded from JSON or YAML and not yet judged. */
export interface ConfigObject {
  /** `namespace/name`: what identifies it while it lives, and what messages call it. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  /** Of this life of the object: another one of the same name has another. The id, where the source gives none. */
  readonly uid: string;
  /** Grows with each change of the spec, not with a change of the status. */
  readonly generation: number;
  /** Unix time in milliseconds: of two objects that want the same, the older one has it. 0 where the source knows no age. */
  readonly createdMs: number;
  /** Decides between objects of equal age, by code units: the path of the file, or the id. */
  readonly order: string;
  /** What messages call it where the id does not say where to look: a file and the number of the document in it. */
  readonly label?: string;
  /** The whole manifest: `apiVersion`, `kind`, `metadata`, `spec`, and `status` as last written. */
  readonly manifest: unknown;
}

/** Text of a source that cannot be taken for objects: a file that is no YAML, a manifest of another kind. */
export interface SourceProblem {
  /** File, with line and column where they are known. */
  readonly source: string;
  readonly message: string;
}

/** What has happened to the objects of a source. */
export type SourceEvent =
  /** The whole set: an object that is not in it is gone. The first event of every source is one of these: it has synced. */
  | {
      readonly type: 'replaced';
      readonly objects: readonly ConfigObject[];
      readonly problems: readonly SourceProblem[];
    }
  /** Added or changed. */
  | { readonly type: 'changed'; readonly object: ConfigObject }
  | { readonly type: 'deleted'; readonly id: string };

/** Why a source cannot follow its objects now. */
export interface SourceOutage {
  /** For people: what is wrong, and what to do about it. */
  readonly reason: string;
  /** Unix time in milliseconds. */
  readonly sinceMs: number;
}

/** Where RateLimitConfig objects come from. */
export interface ResourceSource {
  /**
   * Begins to follow the objects and hands every event to `onEvent`, in order. Resolves when it has begun; whether it has
   * synced tells the first event. Goes on through every outage of what it follows. Rejects when the source cannot be there
   * at all, such as a folder that does not exist or a kubeconfig that cannot be read.
   */
  start(onEvent: (event: SourceEvent) => void): Promise<void>;
  /** What keeps it from following its objects now, each reason once. Absent where nothing can be away for a while. */
  outages?(): readonly SourceOutage[];
  close(): Promise<void>;
}

/** A probe shows the beginning of its answer at best, and one missing right is mended like the next. */
const maxOutages = 3;

/** What keeps a source from following its objects, and since when, for people; empty when nothing does. */
export function outageText(outages: readonly SourceOutage[]): string {
  const told = outages.slice(0, maxOutages).map(textOf);
  const left = outages.length - told.length;
  return [...told, ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
}

function textOf({ reason, sinceMs }: SourceOutage): string {
  return `${reason} (since ${new Date(sinceMs).toISOString()})`;
}
