import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import type { Store } from '../db/store.ts';
import { nameConflict } from '../mfa/enroll.ts';
import { type Factor, getFactor, removeFactor } from '../mfa/factors.ts';
import { getUser } from '../users/update.ts';
import { type AdminRequest, readOptionalPhone } from './input.ts';

interface FactorKey {
  readonly userId: string;
  readonly factorId: string;
}

/** Empty texts leave the factor as it is. */
export async function updateUserFactor(
  store: Store,
  { userId, factorId }: FactorKey,
  changes: { readonly friendlyName?: string | undefined; readonly phone?: string | undefined },
  request: AdminRequest,
): Promise<Factor> {
  const factor = getFactor(await getUser(store, userId), factorId);
  const { friendlyName = '' } = changes;
  const phone = factor.type === 'phone' ? readOptionalPhone(changes.phone) : '';
  const result = await store.factors.update(
    { id: factor.id, userId },
    { ...(friendlyName !== '' && { friendlyName }), ...(phone !== '' && { phone }) },
    toWriteOptions('factor_updated', { userId, factor }, request),
  );
  if (result === 'name_conflict') throw nameConflict(friendlyName);
  return getFactor(await getUser(store, userId), factorId);
}

/** Removes a factor, for example one that the user has lost, and returns it. */
export async function removeUserFactor(
  context: Context,
  { userId, factorId }: FactorKey,
  request: AdminRequest,
): Promise<Factor> {
  const user = await getUser(context.store, userId);
  const factor = getFactor(user, factorId);
  const options = toWriteOptions('factor_deleted', { userId, factor }, request);
  await removeFactor(context, { user, factor }, options);
  return factor;
}

function toWriteOptions(
  action: 'factor_updated' | 'factor_deleted',
  { userId, factor }: { readonly userId: string; readonly factor: Factor },
  { actor, metadata }: AdminRequest,
) {
  const traits = { user_id: userId, factor_id: factor.id, factor_type: factor.type };
  return { at: new Date(metadata.nowMs), audit: auditEntry(actor, action, { metadata, traits }) };
}
