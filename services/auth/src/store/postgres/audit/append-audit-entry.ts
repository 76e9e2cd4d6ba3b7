import type { AuditStore } from '../../../ports/audit-store.ts';
import { type Queryable, query } from '../query.ts';
import { auditInsert, auditParameters } from './audit-insert.ts';

const text = auditInsert(1);

/** {@link AuditStore.append} */
export function appendAuditEntry(sql: Queryable): AuditStore['append'] {
  return async (entry) => {
    await query(sql, text, auditParameters(entry));
  };
}
