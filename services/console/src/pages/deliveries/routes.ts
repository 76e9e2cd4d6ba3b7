import type { Area } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { viewDeliveries } from './list.ts';

const path = '/deliveries';

/** Endpoints of events, and failed deliveries. */
export const deliveriesArea: Area = {
  name: 'deliveries',
  title: 'Deliveries',
  path,
  group: 'Operation',
  permission: 'deliveries',
  pages: [{ path, permission: 'deliveries', view: viewDeliveries }],
  actions: [
    { path: `${path}/:id/send-again`, permission: 'deliveries', submit: sendAgain },
    { path: `${path}/endpoints/:id/test`, permission: 'deliveries', submit: sendTest },
  ],
};

async function sendAgain(visit: Visit): Promise<string> {
  const parameters = { path: { event_id: visit.param('id') } };
  const { type } = await visit.services.auth((client) =>
    client.POST('/admin/events/{event_id}/redeliver', { params: parameters }),
  );
  visit.notify(`${type} is being delivered again. It comes back here if that fails.`);
  return path;
}

async function sendTest(visit: Visit): Promise<string> {
  const parameters = { path: { webhook_id: visit.param('id') } };
  const { delivered, error = 'no reason is known' } = await visit.services.auth((client) =>
    client.POST('/admin/webhooks/{webhook_id}/test', { params: parameters }),
  );
  visit.notify(delivered ? 'The endpoint accepted a test event.' : `The test event failed: ${error}`);
  return path;
}
