import { type AuthSchemas, nextCursor } from '@tollgate/admin-clients/clients';
import type { Visit } from '../../http/visit.ts';
import { type FilterField, readFilters } from '../../ui/form.ts';

export type Entry = AuthSchemas['AuditEntry'];

interface EntryPage {
  readonly entries: readonly Entry[];
  readonly next: string | undefined;
}

const kinds = { '': 'Any', user: 'User', administrator: 'Administrator', api_key: 'API key' };

/** Filters of the log. Their names are those of the admin API. */
export const filterFields = [
  { name: 'action', label: 'Action', placeholder: 'login_failed', isSearch: true },
  { name: 'actor_id', label: 'Id of the actor', placeholder: '8fba2b4c-…' },
  { name: 'kind', label: 'Kind of actor', choices: kinds },
] as const satisfies readonly FilterField[];

/** A page of the entries that match the filters of the URL, newest first: by default, its page. */
export async function readEntries(
  visit: Visit,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string },
): Promise<EntryPage> {
  const query = {
    ...readFilters(filterFields, visit.url),
    ...(cursor !== undefined && { cursor }),
    limit: String(limit),
  };
  let next: string | undefined;
  const entries = await visit.services.auth(async (client) => {
    const result = await client.GET('/admin/audit', { params: { query } });
    next = nextCursor(result.response);
    return result;
  });
  return { entries, next };
}

/** A member of an entry as text; undefined when there is none. */
export function payloadText({ payload }: Entry, name: string): string | undefined {
  const value = payload[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The name of who acted, or the id. */
export function actorName(entry: Entry): string | undefined {
  return payloadText(entry, 'actor_username') ?? payloadText(entry, 'actor_id');
}
