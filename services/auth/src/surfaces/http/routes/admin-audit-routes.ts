import { Type } from 'typebox';
import { createListAuditEntries } from '../../../use-cases/admin/list-audit-entries.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateAdmin } from '../authenticate.ts';
import { pageQuery, readPage, setPageHeaders } from '../pagination.ts';

const listQuery = Type.Object({ ...pageQuery, query: Type.Optional(Type.String()) });

/** `/admin/audit` */
export const addAdminAuditRoutes: AddRoutes = (api, deps) => {
  const listAuditEntries = createListAuditEntries(deps);
  api.get('/admin/audit', { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const page = readPage(request.query);
    const { query = '' } = request.query;
    const { items, total } = await listAuditEntries({ ...page, query });
    setPageHeaders(request, reply, { page, total });
    return reply.send(
      items.map(({ id, payload, at, ip }) => ({
        id,
        payload,
        created_at: at.toISOString(),
        ip_address: ip,
      })),
    );
  });
};
