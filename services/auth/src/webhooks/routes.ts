import type { JsonObject } from '@tollgate/kit/json';
import { Type } from 'typebox';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { type AddRoutes, pageQuery, parsePage, setPageHeaders, uuidParameter } from '../http/api.ts';
import { readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { WebhooksContext } from './deliveries.ts';
import { type StoredEvent, settingsWebhookId } from './store.ts';

const failedQuery = Type.Object(pageQuery);
const eventParams = Type.Object({ event_id: Type.String() });

/** `/admin/events`: events whose delivery was given up. */
export const addEventRoutes: AddRoutes<WebhooksContext> = (api, context) => {
  api.get('/admin/events/failed', { schema: { querystring: failedQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const page = parsePage(request.query);
    const { items, total } = await context.store.events.listFailed(page);
    setPageHeaders(request, reply, { page, total });
    return reply.send({ events: items.map(toJson) });
  });

  api.post(
    '/admin/events/:event_id/redeliver',
    { schema: { params: eventParams } },
    async (request, reply) => {
      const { actor, metadata } = await readAdminRequest(request, context);
      const id = uuidParameter(request.params, 'event_id');
      const audit = auditEntry(actor, 'event_redelivered', { metadata, traits: { event_id: id } });
      const event = await context.store.events.redeliver(id, audit);
      if (event === undefined) throw errors.not_found({ message: 'No failed event has this id' });
      return reply.send(toJson(event));
    },
  );
};

function toJson(event: StoredEvent): JsonObject {
  // The functions that write events write an object with an id.
  const user = event.data.user as { readonly id: string } | undefined;
  return {
    id: event.eventId,
    type: event.type,
    ...(event.webhookId !== settingsWebhookId && { webhook_id: event.webhookId }),
    ...(user && { user_id: user.id }),
    data: event.data,
    created_at: event.createdAt.toISOString(),
    attempts: event.attempts,
    ...(event.failedAt && { failed_at: event.failedAt.toISOString() }),
    last_error: event.lastError,
  };
}
