import { Type } from 'typebox';
import {
  type AddRoutes,
  allowMissingBody,
  body,
  optionalFlag,
  optionalText,
  uuidParameter,
} from '../http/api.ts';
import { readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { WebhooksContext } from './deliveries.ts';
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  requireWebhooks,
  rotateSecret,
  testWebhook,
  toWebhookJson,
  updateWebhook,
} from './webhooks.ts';

const params = Type.Object({ webhook_id: Type.String() });
const webhookBody = body({
  name: optionalText,
  url: optionalText,
  event_types: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
  disabled: optionalFlag,
});
const rotationBody = body({ grace: optionalText });

/** `/admin/webhooks`: endpoints of events. */
export const addWebhookRoutes: AddRoutes<WebhooksContext> = (api, context) => {
  const path = '/admin/webhooks';
  const one = `${path}/:webhook_id`;

  api.get(path, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireWebhooks(context);
    const webhooks = await context.store.webhooks.list();
    return reply.send({ webhooks: webhooks.map((webhook) => toWebhookJson(webhook)) });
  });

  api.post(path, { schema: { body: webhookBody } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireWebhooks(context);
    const webhook = await createWebhook(context, request.body, adminRequest);
    return reply.code(201).send(toWebhookJson(webhook, { withSecret: true }));
  });

  api.get(one, { schema: { params } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireWebhooks(context);
    return reply.send(toWebhookJson(await getWebhook(context, uuidParameter(request.params, 'webhook_id'))));
  });

  api.put(one, { schema: { params, body: webhookBody } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireWebhooks(context);
    const id = uuidParameter(request.params, 'webhook_id');
    const update = { input: request.body, request: adminRequest };
    return reply.send(toWebhookJson(await updateWebhook(context, id, update)));
  });

  api.delete(one, { schema: { params } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireWebhooks(context);
    await deleteWebhook(context, uuidParameter(request.params, 'webhook_id'), adminRequest);
    return reply.code(204).send();
  });

  const rotation = { schema: { params, body: rotationBody }, preValidation: allowMissingBody };
  api.post(`${one}/rotate`, rotation, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireWebhooks(context);
    const id = uuidParameter(request.params, 'webhook_id');
    const { grace } = request.body;
    const webhook = await rotateSecret(context, id, { grace, request: adminRequest });
    return reply.send(toWebhookJson(webhook, { withSecret: true }));
  });

  api.post(`${one}/test`, { schema: { params } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireWebhooks(context);
    const id = uuidParameter(request.params, 'webhook_id');
    return reply.send(await testWebhook(context, id, adminRequest));
  });
};
