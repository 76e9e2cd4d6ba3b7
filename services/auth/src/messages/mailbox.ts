import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import type { MailMessage, MailTransport } from './mailer.ts';

/** A mail that development mode shows. */
interface MailboxEntry extends MailMessage {
  readonly id: number;
  readonly at: Date;
}

/** The mails of development mode, newest first. */
export interface Mailbox {
  list(): readonly MailboxEntry[];
  clear(): void;
}

/** Older mails are forgotten: a development server may run for weeks. */
const maxEntries = 200;

/** Creates the mailbox of development mode: mails that are delivered to it stay there. */
export function createMailbox({ nowMs }: { readonly nowMs: () => number }): Mailbox & MailTransport {
  let entries: readonly MailboxEntry[] = [];
  let lastId = 0;
  return {
    list: () => entries,
    clear() {
      entries = [];
    },
    async deliver(message) {
      lastId++;
      entries = [{ ...message, id: lastId, at: new Date(nowMs()) }, ...entries].slice(0, maxEntries);
      await Promise.resolve();
    },
    deliverNothing: () => Promise.resolve(),
  };
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
  '`': '&#96;',
};

/** Writes text so that it stays text in HTML, in attributes too. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"'`]/g, (char) => entities[char] ?? char);
}

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
  article { border: 1px solid #8888; border-radius: .5rem; margin: 1rem 0; padding: 1rem }
  h2 { font-size: 1.1rem; margin: 0 } p { margin: 0; opacity: .7 }
  iframe { border: 0; width: 100%; height: 16rem; background: #fff; margin-top: 1rem }`;

/** The page that shows mails. What they say is shown in frames that run no script. */
function mailboxPage(mails: readonly MailboxEntry[]): string {
  const articles =
    mails.map(article).join('\n') || '<p>No mail yet. It is shown here instead of being sent.</p>';
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Mail of development mode</title>
<style>${style}</style>
<h1>Mail</h1>
${articles}
</html>
`;
}

function article({ to, subject, at, html }: MailboxEntry): string {
  // Links open beside the page: the frame itself may go nowhere.
  const content = escapeHtml(`<base target="_blank">${html}`);
  return `<article>
<h2>${escapeHtml(subject)}</h2>
<p>to ${escapeHtml(to)}, ${at.toISOString()}</p>
<iframe sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="${content}"></iframe>
</article>`;
}

const mailboxQuery = Type.Object({ to: Type.Optional(Type.String()) });

/** Names by which this machine reaches itself. A page that points a name of its own here is not to read the mails. */
const ownHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** `/dev/mail`: what development mode has mailed, as a page and as JSON. There is no such route otherwise. */
export const addMailboxRoutes: AddRoutes = (api, { mailbox }) => {
  if (mailbox === undefined) return;
  const of = ({ to }: { readonly to?: string }): readonly MailboxEntry[] =>
    mailbox.list().filter((entry) => to === undefined || entry.to === to.toLowerCase());
  const options = {
    schema: { querystring: mailboxQuery, hide: true },
    preHandler: refuseStrangers,
  };

  api.get('/dev/mail', options, (request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header(
        'content-security-policy',
        "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:",
      )
      .send(mailboxPage(of(request.query))),
  );
  api.get('/dev/mail.json', options, (request, reply) => reply.send({ mails: of(request.query) }));
  api.delete('/dev/mail', options, (_request, reply) => {
    mailbox.clear();
    return reply.code(204).send();
  });
};

/** Other sites may not look: what is here signs in. */
async function refuseStrangers(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  for (const header of ['access-control-allow-origin', 'access-control-allow-credentials'])
    reply.removeHeader(header);
  const site = request.headers['sec-fetch-site'] ?? 'none';
  const isOwn = site === 'none' || site === 'same-origin';
  if (!isOwn || request.headers.origin !== undefined || !ownHosts.includes(request.hostname))
    throw errors.no_authorization({ httpStatus: 403, message: 'The mailbox is for this machine only' });
  await Promise.resolve();
}
