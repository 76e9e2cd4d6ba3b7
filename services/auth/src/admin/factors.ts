import type { Context } from '../context.ts';
import { type AuditActor, auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createNotify } from '../messages/send.ts';
import { nameConflict } from '../mfa/enroll.ts';
import type { Factor } from '../mfa/factors.ts';
import { getFactor } from '../mfa/factors.ts';
import { getUser } from '../users/update.ts';
import type { JsonObject } from '../users/user-json.ts';
import { readOptionalPhone } from './create-user.ts';

/** Which factor, and whose. */
interface FactorOf {
  readonly userId: string;
  readonly factorId: string;
}

/** Who does it, and of which request. */
interface By {
  readonly actor: AuditActor;
  readonly metadata: RequestMetadata;
}

/** What an administrator does with factors of others. */
export interface ManageFactors {
  list(userId: string): Promise<readonly Factor[]>;
  /** Answers the factor as changed; an empty text stays as it was. */
  update(
    of: FactorOf,
    changes: { readonly friendlyName?: string | undefined; readonly phone?: string | undefined },
    by: By,
  ): Promise<Factor>;
  /** Removes a factor, whose user has lost it perhaps. Answers what it was. */
  remove(of: FactorOf, by: By): Promise<Factor>;
}

/** Creates {@link ManageFactors}. */
export function createManageFactors(deps: Context): ManageFactors {
  const { store } = deps;
  const notify = createNotify(deps);

  return {
    async list(userId) {
      return (await getUser(store, userId)).factors;
    },
    async update({ userId, factorId }, { friendlyName = '', phone: givenPhone }, { actor, metadata }) {
      const factor = getFactor(await getUser(store, userId), factorId);
      const phone = factor.type === 'phone' ? readOptionalPhone(givenPhone) : '';
      const outcome = await store.factors.update(
        { id: factor.id, userId },
        { ...(friendlyName !== '' && { friendlyName }), ...(phone !== '' && { phone }) },
        {
          at: new Date(metadata.nowMs),
          audit: auditEntry(actor, 'factor_updated', { metadata, traits: traitsOf(userId, factor) }),
        },
      );
      if (outcome === 'name_conflict') throw nameConflict(friendlyName);
      return getFactor(await getUser(store, userId), factorId);
    },
    async remove({ userId, factorId }, { actor, metadata }) {
      const user = await getUser(store, userId);
      const factor = getFactor(user, factorId);
      const audit = auditEntry(actor, 'factor_deleted', { metadata, traits: traitsOf(userId, factor) });
      const isRemoved = await store.factors.remove(
        { id: factor.id, userId },
        { at: new Date(metadata.nowMs), audit },
      );
      if (!isRemoved) throw errors.mfa_factor_not_found();
      if (factor.status === 'verified')
        notify(user, 'MFA_FACTOR_UNENROLLED_NOTIFICATION', { FactorType: factor.type });
      return factor;
    },
  };
}

function traitsOf(userId: string, factor: Factor): JsonObject {
  return { user_id: userId, factor_id: factor.id, factor_type: factor.type };
}
