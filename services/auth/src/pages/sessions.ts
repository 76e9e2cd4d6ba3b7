import { type Html, html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import { describeBrowser } from '@tollgate/kit/user-agent';
import { errors } from '../errors.ts';
import { listSessions, revokeSession, signOutCaller } from '../sessions/sessions.ts';
import type { Session } from '../sessions/store.ts';
import { areaForm, areaPage, time } from './area.ts';
import { form } from './forms.ts';
import type { Owner, Visit } from './visit.ts';

/** Where the user is signed in, and which applications act for them. */
export const sessionsPage = areaPage('sessions', viewSessions);

/** Ends one session, or all others without an id. */
export const endSessionForm = areaForm(
  sessionsPage,
  'session-end',
  async (visit, owner) => {
    const { context, metadata, form: fields } = visit;
    const { session_id: sessionId } = fields;
    if (sessionId === undefined) await signOutCaller(context, { ...owner, scope: 'others' }, metadata);
    else if (isUuid(sessionId)) await revokeSession(context, { ...owner, sessionId }, metadata);
    else throw errors.session_not_found({ httpStatus: 404 });
    return 'session';
  },
  { isSensitive: true },
);

async function viewSessions(visit: Visit, { user, session: current }: Owner): Promise<Html> {
  const { context, metadata, texts } = visit;
  const sessions = await listSessions(context, user.id, metadata);
  const applications = await applicationNames(visit, user.id);
  // The current one is first.
  const sorted = sessions.toSorted((a, b) => Number(b.id === current.id) - Number(a.id === current.id));
  const items = sorted.map(
    (session) =>
      html`<li>${sessionItem(visit, session, {
        isCurrent: session.id === current.id,
        application: session.client && (applications.get(session.client.id) ?? session.client.identifier),
      })}</li>`,
  );
  const endOthers = form(visit, {
    action: visit.path('session-end'),
    content: html`<button class="secondary">${texts.signOutOthers}</button>`,
  });
  return html`<ul class="items">${items}</ul>
${sessions.length > 1 && endOthers}`;
}

/** The names of the OAuth clients that have sessions of the user, by id. */
async function applicationNames(
  { context: { settings, store } }: Visit,
  userId: string,
): Promise<ReadonlyMap<string, string>> {
  if (!settings.oauthServerEnabled) return new Map();
  const grants = await store.authorizations.listGrants(userId);
  return new Map(grants.map(({ client_id: id, client_name: name }) => [id, name || id]));
}

function sessionItem(
  visit: Visit,
  { id, userAgent, ip, createdAt, refreshedAt }: Session,
  { isCurrent, application }: { readonly isCurrent: boolean; readonly application: string | undefined },
): Html {
  const { texts } = visit;
  const device = describeBrowser(userAgent) ?? texts.unknownDevice;
  const name = application ?? device;
  const content = html`<input type="hidden" name="session_id" value="${id}">
<button class="link" aria-label="${texts.signOut}: ${name}">${texts.signOut}</button>`;
  return html`<span>${name}${isCurrent && html` <strong>(${texts.thisSession})</strong>`}<br>
<small>${ip !== '' && `${ip}, `}${texts.signedInAt} ${time(createdAt)}, ${texts.lastUsed} ${time(refreshedAt ?? createdAt)}</small></span>
${!isCurrent && form(visit, { action: visit.path('session-end'), content })}`;
}
