import { type AuditActor, auditEntry } from '../../domain/audit-entry.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors } from '../../errors.ts';
import type { Services } from '../../services.ts';
import { subjectOf } from './admin-user-input.ts';

/** Deletes a user; `soft` leaves a row that says nothing of them, for the references of others. */
export type DeleteUser = (
  of: { readonly id: string; readonly soft: boolean },
  actor: AuditActor,
  facts: RequestFacts,
) => Promise<void>;

/** Creates {@link DeleteUser}. */
export function createDeleteUser({ store }: Pick<Services, 'store'>): DeleteUser {
  return async ({ id, soft }, actor, facts) => {
    const user = await store.users.findById(id);
    if (user === undefined) throw errors.user_not_found();
    const audit = auditEntry(actor, 'user_deleted', { facts, traits: subjectOf(user) });
    const isDeleted = soft
      ? await store.users.softDelete(id, { at: new Date(facts.nowMs), audit })
      : await store.users.delete(id, audit);
    if (!isDeleted) throw errors.user_not_found();
  };
}
