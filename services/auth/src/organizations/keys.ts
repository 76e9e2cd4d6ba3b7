import type { ApiKeysContext } from '../api-keys/context.ts';
import { type Change, lockForChange, type OrganizationsContext } from './organizations.ts';
import type { Membership } from './store.ts';

export type OrganizationKeysContext = OrganizationsContext & ApiKeysContext;

/**
 * Changes keys of an organization in a transaction, in which the member has the right and their
 * number stays.
 *
 * @throws AppError as `lockForChange`, and as `change`
 */
export async function changeKeys<T>(
  context: OrganizationKeysContext,
  { organization, role: own, actor }: Membership & Pick<Change, 'actor'>,
  change: (context: OrganizationKeysContext) => Promise<T>,
): Promise<T> {
  const { store, settings } = context;
  return store.transaction(async (transaction) => {
    const { organizations } = transaction;
    await lockForChange({ organizations, settings }, organization.id, {
      ...{ own, actor, permission: 'keys:write' },
    });
    return change({ ...context, store: transaction });
  });
}
