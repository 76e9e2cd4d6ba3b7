import { nextCursor } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import { maskPath } from '@tollgate/kit/text';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, time } from '../../ui/text.ts';
import { userLink } from '../users/user.ts';

const pageSize = '50';

/** Endpoints of events, and the events that none of their attempts delivered. */
export async function viewDeliveries(visit: Visit): Promise<View> {
  const query = { page: visit.query('cursor') ?? '1', per_page: pageSize };
  let next: string | undefined;
  const [{ webhooks }, { events }] = await Promise.all([
    visit.services.auth((client) => client.GET('/admin/webhooks')),
    visit.services.auth(async (client) => {
      const result = await client.GET('/admin/events/failed', { params: { query } });
      next = nextCursor(result.response, 'page');
      return result;
    }),
  ]);
  const names = new Map(webhooks.map(({ id, name }) => [id, name]));
  return {
    title: 'Deliveries',
    content: html`${failedTable({ events, next, names }, visit)}${webhookTable(webhooks, visit)}`,
  };
}

interface FailedEvent {
  readonly id: string;
  readonly type: string;
  readonly webhook_id?: string;
  readonly user_id?: string;
  readonly attempts: number;
  readonly failed_at?: string;
  readonly last_error: string;
}

interface FailedPage {
  readonly events: readonly FailedEvent[];
  readonly next: string | undefined;
  /** Names of endpoints, by id. */
  readonly names: ReadonlyMap<string, string>;
}

function failedTable({ events, next, names }: FailedPage, visit: Visit): Html {
  return table({
    caption: 'Failed deliveries',
    rows: events,
    url: visit.url,
    nextCursor: next,
    rowId: ({ id }) => `event-${id}`,
    empty: emptyState('Every event has been delivered, or is still being tried.'),
    columns: [
      { title: 'Event', cell: ({ type }) => type },
      {
        title: 'Endpoint',
        cell: ({ webhook_id: id }) => (id === undefined ? 'of the settings' : (names.get(id) ?? 'removed')),
      },
      {
        title: 'User',
        cell: ({ user_id: id }) => (id === undefined ? undefined : userLink(visit, id, id)),
      },
      { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
      { title: 'Last error', cell: (event) => event.last_error },
      { title: 'Given up', cell: (event) => time(event.failed_at, visit.nowMs) },
      {
        title: 'Action',
        cell: ({ id, type }) =>
          button(visit, { action: `/deliveries/${id}/send-again`, text: 'Send again', what: type }),
      },
    ],
  });
}

interface Webhook {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly event_types: readonly string[];
  readonly disabled: boolean;
  readonly last_delivered_at?: string;
  readonly last_failed_at?: string;
  readonly last_error: string;
}

function webhookTable(webhooks: readonly Webhook[], visit: Visit): Html {
  return table({
    caption: 'Endpoints',
    rows: webhooks,
    url: visit.url,
    rowId: ({ id }) => `webhook-${id}`,
    empty: emptyState('There is no endpoint of the admin API. One of the settings is not listed.'),
    columns: [
      { title: 'Name', cell: ({ name }) => name },
      { title: 'State', cell: stateOf },
      { title: 'URL', cell: ({ url }) => maskPath(url) },
      { title: 'Events', cell: ({ event_types: types }) => (types.length === 0 ? 'all' : types.join(', ')) },
      { title: 'Last success', cell: (webhook) => time(webhook.last_delivered_at, visit.nowMs) },
      { title: 'Last failure', cell: (webhook) => time(webhook.last_failed_at, visit.nowMs) },
      {
        title: 'Action',
        cell: ({ id, name }) =>
          button(visit, { action: `/deliveries/endpoints/${id}/test`, text: 'Send a test', what: name }),
      },
    ],
  });
}

function stateOf({ disabled, last_error: lastError }: Webhook): Html {
  if (disabled) return badge('disabled', 'warn');
  return lastError === '' ? badge('active') : html`${badge('failing', 'bad')} ${lastError}`;
}

/** `what` tells the buttons of a table apart for screen readers. */
function button(
  visit: Visit,
  { action, text, what }: { readonly action: string; readonly text: string; readonly what: string },
): Html {
  return html`<form method="post" action="${action}">${visit.formFields()}<button>${text}<span class="visually-hidden">: ${what}</span></button></form>`;
}
