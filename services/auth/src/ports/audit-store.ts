import type { AuditEntry } from '../domain/audit-entry.ts';

/** The audit log, for events that change nothing else; the others write their entry in the statement of the change. */
export interface AuditStore {
  append(entry: AuditEntry): Promise<void>;
}
