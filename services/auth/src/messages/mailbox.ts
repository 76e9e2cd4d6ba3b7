import { createHash } from 'node:crypto';
import { type Html, html, trustedHtml } from '@tollgate/kit/html';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, denyCors } from '../http/api.ts';
import type { MailMessage, MailTransport } from './mail-transport.ts';

interface MailboxEntry extends MailMessage {
  readonly id: number;
  readonly at: Date;
}

/** Bounds the memory of a development server that runs for weeks. */
const maxEntries = 200;

/** Mails of development mode, which are kept in memory instead of being sent. */
export class Mailbox implements MailTransport {
  readonly #nowMs: () => number;
  #entries: readonly MailboxEntry[] = [];
  #lastId = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Newest first. */
  list(): readonly MailboxEntry[] {
    return this.#entries;
  }

  clear(): void {
    this.#entries = [];
  }

  async deliver(message: MailMessage): Promise<void> {
    this.#lastId++;
    const entry = { ...message, id: this.#lastId, at: new Date(this.#nowMs()) };
    this.#entries = [entry, ...this.#entries].slice(0, maxEntries);
    await Promise.resolve();
  }

  async deliverNothing(): Promise<void> {
    await Promise.resolve();
  }
}

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
  article { border: 1px solid #8888; border-radius: .5rem; margin: 1rem 0; padding: 1rem }
  h2 { font-size: 1.1rem; margin: 0 } p { margin: 0; opacity: .7 }
  iframe { border: 0; width: 100%; height: 40rem; background: #fff; margin-top: 1rem }`;

/** Gives each frame the height of its mail. */
const script = `
  for (const frame of document.querySelectorAll('iframe')) {
    const fit = () => { frame.style.height = frame.contentDocument.documentElement.scrollHeight + 'px' };
    frame.addEventListener('load', fit);
    fit();
  }
`;
const scriptHash = createHash('sha256').update(script).digest('base64');

/**
 * Bodies are shown in sandboxed frames, which run no scripts. Their origin is that of the page, so
 * that the page can measure them.
 */
function renderPage(mails: readonly MailboxEntry[]): Html {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Mail (development mode)</title>
<style>${trustedHtml(style)}</style>
<h1>Mail</h1>
${mails.length === 0 && html`<p>No mail yet. Mails are shown here instead of being sent.</p>`}
${mails.map(renderMail)}
<script>${trustedHtml(script)}</script>
</html>
`;
}

function renderMail({ to, subject, at, html: body }: MailboxEntry): Html {
  // Links open in a new tab: the sandbox does not let the frame navigate.
  return html`<article>
<h2>${subject}</h2>
<p>to ${to}, ${at.toISOString()}</p>
<iframe sandbox="allow-same-origin allow-popups allow-popups-to-escape-sandbox" srcdoc="${`<base target="_blank">${body}`}"></iframe>
</article>
`;
}

const mailboxQuery = Type.Object({ to: Type.Optional(Type.String()) });

/** Other names could be those of a web page that uses DNS rebinding to read the mails. */
const ownHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** `/dev/mail`: mails of development mode, as HTML and JSON. */
export const addMailboxRoutes: AddRoutes<{ readonly mailbox: Mailbox | undefined }> = (api, { mailbox }) => {
  if (mailbox === undefined) return;
  const select = ({ to }: { readonly to?: string }): readonly MailboxEntry[] =>
    mailbox.list().filter((entry) => to === undefined || entry.to === to.toLowerCase());
  const options = {
    schema: { querystring: mailboxQuery, hide: true },
    preHandler: denyOtherSites,
  };

  api.get('/dev/mail', options, (request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header(
        'content-security-policy',
        `default-src 'none'; script-src 'sha256-${scriptHash}'; style-src 'unsafe-inline'; img-src https: data:`,
      )
      .send(renderPage(select(request.query)).toString()),
  );
  api.get('/dev/mail.json', options, (request, reply) => reply.send({ mails: select(request.query) }));
  api.delete('/dev/mail', options, (_request, reply) => {
    mailbox.clear();
    return reply.code(204).send();
  });
};

/** Mails contain links that sign in, so other web sites must not read them. */
async function denyOtherSites(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  denyCors(reply);
  const site = request.headers['sec-fetch-site'] ?? 'none';
  const isSameSite = site === 'none' || site === 'same-origin';
  if (!isSameSite || request.headers.origin !== undefined || !ownHosts.includes(request.hostname))
    throw errors.no_authorization({
      httpStatus: 403,
      message: 'The mailbox is only available on this machine',
    });
  await Promise.resolve();
}
