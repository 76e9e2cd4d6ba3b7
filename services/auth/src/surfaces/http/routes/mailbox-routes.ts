import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../../../errors.ts';
import type { MailboxEntry } from '../../../ports/mailbox.ts';
import type { AddRoutes } from '../api.ts';
import { mailboxPage } from '../mailbox-page.ts';

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
