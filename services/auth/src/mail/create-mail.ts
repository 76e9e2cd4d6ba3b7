import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { Registry } from 'prom-client';
import { fetchText } from '../fetch/fetch-text.ts';
import type { Mailbox } from '../ports/mailbox.ts';
import type { Mailer, MailTransport } from '../ports/mailer.ts';
import { type Settings, settingsSpec } from '../settings/settings.ts';
import { countMails } from './count-mails.ts';
import { countTemplateFailures } from './count-template-failures.ts';
import { createMailTemplates } from './mail-templates.ts';
import { createMailbox } from './mailbox.ts';
import { createSmtpTransport } from './smtp-transport.ts';
import { createTemplateMailer } from './template-mailer.ts';

/** What sends mail, and in development mode shows it. */
export interface Mail {
  readonly mailer: Mailer;
  readonly mailbox: Mailbox | undefined;
  /** Fetches the templates. */
  readonly templates: LifecycleComponent;
}

const templateTimeoutMs = 10_000;
/** Far more than any mail needs; clients cut off what is longer than a tenth of it. */
const maxTemplateBytes = 1024 * 1024;

/** No-op transport for a server without SMTP_HOST, as GoTrue has it. */
const noTransport: MailTransport = {
  deliver: () => Promise.resolve(),
  deliverNothing: () => Promise.resolve(),
};

/** Creates the mailer: SMTP; without SMTP_HOST the mailbox of development mode, or a no-op. */
export function createMail(
  settings: Settings,
  deps: { readonly logger: Logger; readonly nowMs: () => number; readonly registry: Registry | undefined },
): Mail {
  const { logger, nowMs, registry } = deps;
  const hasServer = settings.smtpHost !== '';
  const mailbox = settings.mode === 'development' && !hasServer ? createMailbox({ nowMs }) : undefined;
  const privateHosts = settings.mailerTemplatePrivateHosts.map((host) => host.toLowerCase());
  const countFailure = countTemplateFailures(registry);
  const templates = createMailTemplates({
    settings,
    fetchText: (url) =>
      fetchText(url, { privateHosts, timeoutMs: templateTimeoutMs, maxBytes: maxTemplateBytes }),
    logger,
    nowMs,
    countFailure,
  });
  if (!hasServer && mailbox === undefined)
    logger.warn(
      { variable: settingsSpec.smtpHost.env },
      'no SMTP server is set: no mail is sent, and requests that would send one succeed',
    );
  const transport = mailbox ?? (hasServer ? createSmtpTransport(settings) : noTransport);
  const mailer = createTemplateMailer({ settings, templates, transport, logger, countFailure });
  return {
    mailer: registry === undefined ? mailer : countMails(mailer, registry),
    mailbox,
    templates: { name: 'mail templates', start: templates.start },
  };
}
