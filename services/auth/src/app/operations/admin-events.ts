import { forAdmin, type Operations } from './operation.ts';

export const adminEventsOperations: Operations = {
  'GET /admin/audit': {
    id: 'adminListAudit',
    ...forAdmin('audit:read'),
    summary: 'List the audit log, newest first',
    response: ['AuditEntry'],
  },
  'GET /admin/events/failed': {
    id: 'adminListFailedEvents',
    ...forAdmin('webhooks:write'),
    summary: 'List events whose delivery was given up, newest first',
    response: 'EventList',
  },
  'POST /admin/events/{event_id}/redeliver': {
    id: 'adminRedeliverEvent',
    ...forAdmin('webhooks:write'),
    summary: 'Deliver a failed event again',
    response: 'Event',
  },
  'GET /admin/webhooks': {
    id: 'adminListWebhooks',
    ...forAdmin('webhooks:write'),
    summary: 'List the endpoints of events',
    response: 'WebhookList',
  },
  'POST /admin/webhooks': {
    id: 'adminCreateWebhook',
    ...forAdmin('webhooks:write'),
    summary: 'Add an endpoint of events. Returns its secret, once',
    response: 'Webhook',
    status: 201,
    example: ['name', 'url', 'event_types'],
  },
  'GET /admin/webhooks/{webhook_id}': {
    id: 'adminGetWebhook',
    ...forAdmin('webhooks:write'),
    summary: 'Get an endpoint',
    response: 'Webhook',
  },
  'PUT /admin/webhooks/{webhook_id}': {
    id: 'adminUpdateWebhook',
    ...forAdmin('webhooks:write'),
    summary: 'Change an endpoint: name, URL, types of events, or whether it is disabled',
    response: 'Webhook',
    example: ['disabled'],
  },
  'DELETE /admin/webhooks/{webhook_id}': {
    id: 'adminDeleteWebhook',
    ...forAdmin('webhooks:write'),
    summary: 'Remove an endpoint and the events that wait for it',
    status: 204,
  },
  'POST /admin/webhooks/{webhook_id}/rotate': {
    id: 'adminRotateWebhookSecret',
    ...forAdmin('webhooks:write'),
    summary: 'Make a new secret; the old one signs, too, for `grace` (24h by default). Returns it, once',
    response: 'Webhook',
  },
  'POST /admin/webhooks/{webhook_id}/test': {
    id: 'adminTestWebhook',
    ...forAdmin('webhooks:write'),
    summary: 'Post an event `webhook.test` to an endpoint at once',
    response: 'WebhookTest',
  },
};
