/** Columns that are encrypted where the settings say so. */
export const sealedColumns = ['password hashes', 'factor secrets', 'refresh token keys'] as const;

/** One of them. */
export type SealedColumn = (typeof sealedColumns)[number];

/** What one step of sealing anew has done. */
export interface ResealStep {
  readonly resealed: number;
  /** Where the next step goes on; absent after the last one. */
  readonly next: string | undefined;
}

/** Values that are kept encrypted, whatever they say. */
export interface SealedColumnStore {
  /**
   * Goes through up to `atMost` values, of rows whose ids come after `after`, and seals those anew that the settings of today would keep
   * in another form. A value that somebody else writes meanwhile stays as that one wrote it.
   */
  reseal(column: SealedColumn, after: string, atMost: number): Promise<ResealStep>;
}
