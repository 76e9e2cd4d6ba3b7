import { type Html, html } from '@tollgate/kit/html';
import { findBrowser } from '@tollgate/kit/user-agent';
import { actionColumn } from '../../http/actions.ts';
import type { Visit } from '../../http/visit.ts';
import { ServiceError } from '../../services/session-clients.ts';
import { periodBar } from '../../ui/charts.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { relative, time } from '../../ui/text.ts';
import { clientPath } from '../oauth-clients/client.ts';
import type { UserPath } from './user.ts';

/** Days of the bars that say when sessions were in use. */
const days = 14;

interface Session {
  readonly id: string;
  readonly created_at: string;
  readonly refreshed_at?: string;
  readonly used_at?: string;
  readonly token_expires_at: string;
  readonly not_after?: string;
  readonly aal: string;
  readonly amr: readonly { readonly method: string }[];
  readonly user_agent: string;
  readonly ip: string;
  readonly client_id?: string;
}

/** Sessions of a user: device, address and time. */
export async function viewSessions(visit: Visit, path: UserPath): Promise<Html> {
  const { sessions } = await visit.services.auth((client) =>
    client.GET('/admin/users/{user_id}/sessions', { params: { path } }),
  );
  const clients = await readClientNames(visit, sessions);
  const { nowMs } = visit;
  return table<Session>({
    caption: 'Sessions',
    rows: sessions,
    url: visit.url,
    empty: emptyState('The user is not signed in anywhere.'),
    rowId: ({ id }) => `session-${id}`,
    columns: [
      { title: 'Device', cell: device },
      { title: 'Address', cell: ({ ip }) => ip || undefined },
      { title: 'Client', cell: (session) => clientLink(session, clients, visit) },
      { title: `In use, last ${days} days`, cell: (session) => usage(session, nowMs) },
      { title: 'First use', cell: (session) => time(session.created_at, nowMs) },
      { title: 'Last use', cell: (session) => time(lastUse(session), nowMs) },
      { title: 'Level', cell: level },
      { title: 'Token expires', cell: (session) => time(tokenExpiry(session), nowMs) },
      ...actionColumn(visit, 'users/change', ({ id }: Pick<Session, 'id'>) => ({
        End: `/users/${path.user_id}/sessions/${id}/end`,
      })),
    ],
  });
}

/** A short name of browsers; what other programs send is shown whole. */
function device({ user_agent: userAgent }: Session): Html {
  const browser = findBrowser(userAgent);
  return browser === undefined
    ? html`${userAgent || 'Unknown'}`
    : html`<span title="${userAgent}">${browser}</span>`;
}

function level({ aal, amr }: Session): string {
  return `${aal}: ${amr.map(({ method }) => method).join(', ')}`;
}

/** The refresh and the last request are known, each to its precision. */
function lastUse({ created_at: created, refreshed_at: refreshed, used_at: used }: Session): number {
  return Math.max(...[created, refreshed, used].flatMap((at) => (at === undefined ? [] : Date.parse(at))));
}

/** A token is not valid longer than its session. */
function tokenExpiry({ token_expires_at: token, not_after: end }: Session): number {
  return Math.min(Date.parse(token), end === undefined ? Number.POSITIVE_INFINITY : Date.parse(end));
}

function usage(session: Session, nowMs: number): Html {
  const [fromMs, toMs] = [Date.parse(session.created_at), lastUse(session)];
  const label = `In use from ${relative(fromMs - nowMs)} to ${relative(toMs - nowMs)}`;
  return periodBar({ fromMs, toMs }, { days, nowMs, label });
}

function clientLink(
  { client_id: id }: Session,
  clients: ReadonlyMap<string, string>,
  visit: Visit,
): Html | undefined {
  if (id === undefined) return undefined;
  const name = clients.get(id) ?? id;
  return visit.can('clients') ? html`<a href="${clientPath({ client_id: id })}">${name}</a>` : html`${name}`;
}

/** Clients whose names are read. A user has sessions of a few. */
const maxClients = 20;

/** Names of the OAuth clients of sessions, by id. */
async function readClientNames(
  visit: Visit,
  sessions: readonly Pick<Session, 'client_id'>[],
): Promise<ReadonlyMap<string, string>> {
  if (!visit.can('clients')) return new Map();
  const ids = new Set(sessions.flatMap(({ client_id: id }) => id ?? []));
  const named = [...ids].slice(0, maxClients).map(async (id): Promise<[string, string][]> => {
    const params = { path: { client_id: id } };
    try {
      const { client_name: name = '' } = await visit.services.auth((client) =>
        client.GET('/admin/oauth/clients/{client_id}', { params }),
      );
      return name === '' ? [] : [[id, name]];
    } catch (error) {
      if (error instanceof ServiceError) return [];
      throw error;
    }
  });
  return new Map((await Promise.all(named)).flat());
}
