import type { Place } from './problem.ts';

/** Where one descriptor comes from. */
export interface ResourcePlace {
  /** JSON path of what has its key and value: a descriptor, or an entry of a match. */
  readonly entry: string;
  /** JSON path of what has its `rateLimit`: the same descriptor, or a limit. */
  rule: string;
}

/** The places of all descriptors of one object by their `at`. */
export type ResourcePlaces = ResourcePlace[];

/** Where a field of a descriptor, named as in rule files, is in a resource. */
export function locateInResource({ entry, rule }: ResourcePlace, field: string | undefined): Place {
  switch (field) {
    case undefined:
      return { field: entry };
    case 'unit':
    case 'replaces':
      return { field: `${rule}.rateLimit.${field}` };
    case 'share_threshold':
      return { field: `${entry}.shareThreshold` };
    default:
      return { field: `${entry}.${field}` };
  }
}
