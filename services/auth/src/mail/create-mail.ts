import type { Logger } from '@tollgate/kit/logger';
import { fetchText } from '../fetch/fetch-text.ts';
import type { Mailbox } from '../ports/mailbox.ts';
import type { Mailer } from '../ports/mailer.ts';
import type { Settings } from '../settings/settings.ts';
import { createMailTemplates } from './mail-templates.ts';
import { createMailbox } from './mailbox.ts';
import { createSmtpTransport } from './smtp-transport.ts';
import { createTemplateMailer } from './template-mailer.ts';

/** What sends mail, and in development mode shows it. */
export interface Mail {
  readonly mailer: Mailer;
  readonly mailbox: Mailbox | undefined;
}

const templateTimeoutMs = 10_000;
/** Far more than any mail needs; clients cut off what is longer than a tenth of it. */
const maxTemplateBytes = 1024 * 1024;

/** Puts together how mail is sent: by SMTP, or in development mode without SMTP_HOST to the mailbox. */
export function createMail(
  settings: Settings,
  { logger, nowMs }: { readonly logger: Logger; readonly nowMs: () => number },
): Mail {
  const mailbox =
    settings.mode === 'development' && settings.smtpHost === '' ? createMailbox({ nowMs }) : undefined;
  const privateHosts = settings.mailerTemplatePrivateHosts.map((host) => host.toLowerCase());
  const templates = createMailTemplates({
    settings,
    fetchText: (url) =>
      fetchText(url, { privateHosts, timeoutMs: templateTimeoutMs, maxBytes: maxTemplateBytes }),
    logger,
    nowMs,
  });
  const transport = mailbox ?? createSmtpTransport(settings);
  return { mailer: createTemplateMailer({ settings, templates, transport, logger }), mailbox };
}
