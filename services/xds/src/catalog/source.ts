import type { StoredVersion } from './stored-version.ts';

/** A RateLimitConfig as read from its source, decoded and not validated. */
export interface ConfigObject {
  /** `namespace/name`. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  /** Differs for an object that was deleted and created again. The id, if the source has none. */
  readonly uid: string;
  /** Grows with each change of the spec, but not of the status. */
  readonly generation: number;
  /** Unix time in milliseconds: the oldest object wins a conflict. 0 if unknown. */
  readonly createdMs: number;
  /** Order of objects of equal age, by code units: the path of the file, or the id. */
  readonly order: string;
  /** File and number of the document, for messages. */
  readonly label?: string;
  /** The whole manifest, including `status` as last written. */
  readonly manifest: unknown;
  /** The last valid version before a restart, if the source keeps one. */
  readonly stored?: StoredVersion | undefined;
}

/** Content of a source that is not an object: an invalid file, an unknown kind. */
export interface SourceProblem {
  /** File, with line and column if known. */
  readonly source: string;
  readonly message: string;
}

export type SourceEvent =
  /** All objects: others were deleted. The first event of every source is of this type. */
  | {
      readonly type: 'replaced';
      readonly objects: readonly ConfigObject[];
      readonly problems?: readonly SourceProblem[];
    }
  /** Added or changed. */
  | { readonly type: 'changed'; readonly object: ConfigObject }
  | { readonly type: 'deleted'; readonly id: string };

/** Why a source cannot follow its objects. */
export interface SourceOutage {
  /** Problem and remedy. */
  readonly reason: string;
  /** Unix time in milliseconds. */
  readonly sinceMs: number;
}

/** Where RateLimitConfig objects come from: a cluster or a folder. */
export interface ResourceSource {
  /**
   * Starts to follow the objects and passes every event to `onEvent`, in order. Outages are
   * retried. Rejects when the source cannot exist, such as a missing folder.
   */
  start(onEvent: (event: SourceEvent) => void): Promise<void>;
  /** Current outages, each reason once. Absent in sources that have none. */
  outages?(): readonly SourceOutage[];
  close(): Promise<void>;
}

/** Outages in a message: a readiness probe shows only its beginning. */
const maxOutages = 3;

/** Empty without outages. */
export function formatOutages(outages: readonly SourceOutage[]): string {
  const shown = outages
    .slice(0, maxOutages)
    .map(({ reason, sinceMs }) => `${reason} (since ${new Date(sinceMs).toISOString()})`);
  const left = outages.length - shown.length;
  return [...shown, ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
}
