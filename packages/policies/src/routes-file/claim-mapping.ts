import type { MappedAttribute } from '../decide/caller.ts';
import type { ClaimPath } from './claim-path.ts';

/** Where an attribute comes from. */
export interface ClaimSource {
  readonly path: ClaimPath;
  /** Whether claims win over stored values. */
  readonly fromToken: boolean;
}

/** The `claims` of the routes file, or of an issuer. */
export interface ClaimMapping {
  /** Attributes of the table. */
  readonly attributes: ReadonlyMap<MappedAttribute, ClaimSource>;
  /** Attributes that the file adds. */
  readonly added: ReadonlyMap<string, ClaimSource>;
}

export const emptyMapping: ClaimMapping = { attributes: new Map(), added: new Map() };
