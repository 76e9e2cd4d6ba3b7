import type { AuditEntry } from '../../../domain/audit-entry.ts';
import { noInstance } from '../gotrue-columns.ts';
import type { Parameter } from '../query.ts';

/**
 * SQL that writes an audit entry, for the `with` of the statement that it belongs to; takes {@link auditParameters} as the
 * parameters from `$first` on. `from`, a name of that `with`, keeps it from being written when there nothing happened.
 */
export function auditInsert(first: number, from?: string): string {
  return `insert into audit_log_entries (id, instance_id, payload, created_at, ip_address)
    select gen_random_uuid(), ${noInstance}, $${first}::json, $${first + 1}::timestamptz, $${first + 2}::text
    ${from === undefined ? '' : `from ${from} limit 1`}`;
}

/** The parameters of {@link auditInsert}. */
export function auditParameters({ payload, at, ip }: AuditEntry): Parameter[] {
  return [payload, at, ip];
}
