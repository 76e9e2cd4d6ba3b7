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
  /** Hosts that were allowed for an access policy before a restart, if the source keeps them. */
  readonly allowedHosts?: readonly string[] | undefined;
}

/** Content of a source that is not an object: an invalid file, an unknown kind. */
export interface SourceProblem {
  /** File, with line and column if known. */
  readonly source: string;
  readonly message: string;
}

/** A file that could not be read since the start, and of which no version is stored. */
export interface UnreadFile extends SourceProblem {
  /** Whether its text names access policies. */
  readonly namesPolicies: boolean;
}

export type SourceEvent =
  /** All objects: others were deleted. The first event of every source is of this type. */
  | {
      readonly type: 'replaced';
      readonly objects: readonly ConfigObject[];
      readonly problems?: readonly SourceProblem[];
      /** Files that never could be read, so that their objects are not known. */
      readonly unread?: readonly UnreadFile[];
      /** Objects that were in force before a restart, in the first event. */
      readonly before?: readonly ConfigObject[];
    }
  /** Added or changed. */
  | { readonly type: 'changed'; readonly object: ConfigObject }
  | {
      readonly type: 'deleted';
      readonly id: string;
      /** A list did not contain it. Default: the source reported its deletion. */
      readonly byList?: boolean;
    };

/** Why a source cannot follow its objects. */
export interface SourceOutage {
  /** Problem and remedy. */
  readonly reason: string;
  /** Unix time in milliseconds. */
  readonly sinceMs: number;
  /** A privilege is missing, which only an operator can grant. */
  readonly isForbidden?: boolean;
}

/** All objects of a source vanish. */
export interface SourceDeletion {
  readonly reason: string;
  /** They are gone, and will not be listed. */
  readonly isGone: boolean;
}

/** A deleted object whose rules stay in force. */
export interface HeldObject extends Pick<ConfigObject, 'id' | 'uid' | 'generation' | 'createdMs'> {
  readonly spec: unknown;
  /** @see ConfigObject.allowedHosts */
  readonly allowedHosts?: readonly string[] | undefined;
}

/** Held deletions as they are stored. */
export interface StoredHold {
  /** An operator lets the deletions through. */
  readonly isAllowed: boolean;
  readonly objects: readonly HeldObject[];
}

/** Where held deletions are stored, and how an operator lets them through. */
export interface HoldStore {
  /** A command for an operator. */
  readonly command: string;
  /** Resolves when the first state is known, or after a bound. */
  start(onChange: (stored: StoredHold) => void): Promise<void>;
  /** Sets the objects that are held back; empty for none. */
  put(objects: readonly HeldObject[]): void;
  close(): Promise<void>;
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
  /**
   * Why all objects vanish, or have vanished; undefined when nothing is known. Rejects when that
   * cannot be found out. Absent in sources that never know.
   */
  findDeletion?(): Promise<SourceDeletion | undefined>;
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
