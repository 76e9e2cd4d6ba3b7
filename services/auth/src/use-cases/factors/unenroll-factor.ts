import { auditEntry } from '../../domain/audit-entry.ts';
import type { Factor } from '../../domain/factor.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { Session } from '../../domain/session.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { Services } from '../../services.ts';
import { createNotify, type NotifyDeps } from '../notifications/notify.ts';
import { ownFactor } from './own-factor.ts';

/** Removes a factor of the caller, and answers what it was. Sessions that owe it their `aal2` fall back. */
export type UnenrollFactor = (
  of: { readonly user: User; readonly session: Session; readonly factorId: string },
  facts: RequestFacts,
) => Promise<Factor>;

/** Creates {@link UnenrollFactor}. */
export function createUnenrollFactor(deps: Pick<Services, 'store'> & NotifyDeps): UnenrollFactor {
  const { store } = deps;
  const notify = createNotify(deps);
  return async ({ user, session, factorId }, facts) => {
    const factor = ownFactor(user, factorId);
    if (factor.status === 'verified' && session.aal === 'aal1')
      throw errors.insufficient_aal({
        message: 'AAL2 required to unenroll verified factor',
        httpStatus: 422,
      });
    const traits = { factor_id: factor.id, factor_status: factor.status, session_id: session.id };
    const isRemoved = await store.factors.remove(
      { id: factor.id, userId: user.id },
      { at: new Date(facts.nowMs), audit: auditEntry(user, 'factor_unenrolled', { facts, traits }) },
    );
    if (!isRemoved) throw errors.mfa_factor_not_found();
    if (factor.status === 'verified')
      notify(user, 'MFA_FACTOR_UNENROLLED_NOTIFICATION', { FactorType: factor.type });
    return factor;
  };
}
