import type { Logger } from '@tollgate/kit/logger';
import type { Registry } from 'prom-client';
import { fetchText } from '../fetch/fetch-text.ts';
import type { Mailbox } from '../ports/mailbox.ts';
import type { Mailer } from '../ports/mailer.ts';
import type { Settings } from '../settings/settings.ts';
import { countMails } from './count-mails.ts';
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
  deps: { readonly logger: Logger; readonly nowMs: () => number; readonly registry: Registry | undefined },
): Mail {
  const { logger, nowMs, registry } = deps;
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
  const mailer = createTemplateMailer({ settings, templates, transport, logger });
  return { mailer: registry === undefined ? mailer : countMails(mailer, registry), mailbox };
}
