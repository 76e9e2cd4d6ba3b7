import type { GuardedObject } from '../catalog/deletion-guard.ts';
import type { ConfigObject } from '../catalog/source.ts';
import type { PolicyFinding } from './policy-result.ts';
import type { ValidVersion } from './policy-version.ts';

/** A policy as it was read last. */
export interface KnownPolicy extends GuardedObject {
  readonly object: ConfigObject;
  /** The last valid version; undefined if there was none. */
  readonly valid: ValidVersion | undefined;
  /** Problems of the version that was read last. */
  readonly problems: readonly PolicyFinding[];
  /** Its hosts that are allowed for its namespace, or were while it had them. */
  readonly allowedHosts: readonly string[];
  /** Its namespace had no space for the version that was read last. */
  readonly isOversize?: true;
}
