import type { JsonObject } from '@tollgate/kit/json';
import { type Static, Type } from 'typebox';
import type { AuditFilter, AuditScope, StoredAuditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { type AddRoutes, pageQuery, parsePage, setNextLink, setPageHeaders } from '../http/api.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import {
  cursorQuery,
  encodeCursor,
  parameter,
  parseCursor,
  totalQuery,
  wantsCursor,
  wantsTotal,
} from './list-pages.ts';
import type { AdminContext } from './users.ts';

const filterQuery = {
  query: parameter(
    '`author:`, `action:` or `type:` and a part of the name or phone, action or log type. Reads all entries.',
  ),
  actor_id: parameter('The id of who acted.'),
  action: parameter('The action, such as `login_failed`.'),
  kind: parameter('The kind of actor, such as `administrator`.'),
};

const listQuery = Type.Object({ ...pageQuery, ...totalQuery, ...cursorQuery, ...filterQuery });

/** `/admin/audit` */
export const addAdminAuditRoutes: AddRoutes<AdminContext> = (api, context) => {
  const { audit } = context.store;
  api.get('/admin/audit', { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const filter = readFilter(request.query);
    if (wantsCursor(request.query, false)) {
      const { limit, after } = parseCursor(request.query);
      const { items, next } = await audit.listAfter(filter, { limit, after });
      if (next) setNextLink(request, reply, { cursor: encodeCursor(next), limit: String(limit) });
      return reply.send(items.map(toJson));
    }
    const page = parsePage(request.query);
    if (!wantsTotal(request.query)) {
      const { items, hasMore } = await audit.listUncounted(filter, page);
      if (hasMore) setNextLink(request, reply, { page: String(page.number + 1) });
      return reply.send(items.map(toJson));
    }
    const { items, total } = await audit.list(filter, page);
    setPageHeaders(request, reply, { page, total });
    return reply.send(items.map(toJson));
  });
};

function toJson({ id, payload, at, ip }: StoredAuditEntry): JsonObject {
  return { id, payload, created_at: at.toISOString(), ip_address: ip };
}

/** Empty values are ignored. @throws AppError `validation_failed`. */
function readFilter(query: Static<typeof listQuery>): AuditFilter {
  const { query: search = '', actor_id: actorId = '', action = '', kind = '' } = query;
  return {
    ...(search !== '' && { search: readSearch(search) }),
    // The ids of entries are in lower case.
    ...(actorId !== '' && { actorId: actorId.toLowerCase() }),
    ...(action !== '' && { action }),
    ...(kind !== '' && { kind }),
  };
}

const auditScopes: readonly AuditScope[] = ['author', 'action', 'type'];

/** Reads a text to search for after `author:`, `action:` or `type:`. */
function readSearch(query: string): NonNullable<AuditFilter['search']> {
  const colon = query.indexOf(':');
  const scope = auditScopes.find((known) => known === query.slice(0, colon));
  if (colon < 0 || scope === undefined)
    throw errors.validation_failed({ message: `Invalid query scope: ${query.slice(0, 64)}` });
  return { scope, text: query.slice(colon + 1) };
}
