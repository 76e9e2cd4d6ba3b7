import { errors } from '../../errors.ts';
import type { AuditQuery, AuditScope, StoredAuditEntry } from '../../ports/audit-store.ts';
import type { Page, PageRequest } from '../../ports/page.ts';
import type { Services } from '../../services.ts';

/** Lists the audit log, newest first. `query` is empty or `author:`, `action:` or `type:` with a text to look for. */
export type ListAuditEntries = (
  listing: PageRequest & { readonly query: string },
) => Promise<Page<StoredAuditEntry>>;

const scopes: readonly AuditScope[] = ['author', 'action', 'type'];

/** Creates {@link ListAuditEntries}. */
export function createListAuditEntries({ store }: Pick<Services, 'store'>): ListAuditEntries {
  return ({ query, ...page }) => store.audit.list({ ...page, search: readSearch(query) });
}

function readSearch(query: string): AuditQuery['search'] {
  if (query === '') return undefined;
  const colon = query.indexOf(':');
  const scope = scopes.find((known) => known === query.slice(0, colon));
  if (colon < 0 || scope === undefined)
    throw errors.validation_failed({ message: `Invalid query scope: ${query.slice(0, 64)}` });
  return { scope, text: query.slice(colon + 1) };
}
