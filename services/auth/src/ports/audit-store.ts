import type { AuditEntry } from '../domain/audit-entry.ts';
import type { Page, PageRequest } from './page.ts';

/** An entry as it is kept. */
export interface StoredAuditEntry extends AuditEntry {
  readonly id: string;
}

/** What entries are looked for by: who it was, what was done, to what kind of thing. */
export type AuditScope = 'author' | 'action' | 'type';

/** Which entries are listed, newest first. */
export interface AuditQuery extends PageRequest {
  /** Those that have this text there, whatever its case; absent for all. */
  readonly search: { readonly scope: AuditScope; readonly text: string } | undefined;
}

/** The audit log. Whoever changes something writes the entry in the statement of the change. */
export interface AuditStore {
  /** For events that change nothing else. */
  append(entry: AuditEntry): Promise<void>;
  list(query: AuditQuery): Promise<Page<StoredAuditEntry>>;
}
