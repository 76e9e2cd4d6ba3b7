import { type ReceivedMail, type Smtp, type SmtpOptions, startSmtp } from '@tollgate/testkit/smtp';
import type t from 'tap';
import { type AuthServer, startAuthServer } from './auth-server.ts';

/** A server with email confirmation, and its mail server. */
export interface MailingServer {
  readonly server: AuthServer;
  readonly smtp: Smtp;
}

/** `variables` are names without `SVC_`. */
export async function startMailingServer(
  test: Pick<typeof t, 'name' | 'teardown'>,
  variables: Readonly<Record<string, string>> = {},
  options: SmtpOptions = {},
): Promise<MailingServer> {
  const smtp = await startSmtp(options);
  test.teardown(() => smtp.stop());
  const server = await startAuthServer(test, {
    MAILER_AUTOCONFIRM: 'false',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
    ...variables,
  });
  return { server, smtp };
}

/** The code in a built-in email. */
export function codeIn({ html }: Pick<ReceivedMail, 'html'>): string {
  return wanted(/<strong[^>]*>(\d+)<\/strong>/.exec(html)?.[1], 'code', html);
}

/** The link in a built-in email. */
export function linkIn({ html }: Pick<ReceivedMail, 'html'>): URL {
  const href = /<a [^>]*href="([^"]*)">/.exec(html)?.[1]?.replaceAll('&amp;', '&');
  return new URL(wanted(href, 'link', html));
}

function wanted(found: string | undefined, what: string, html: string): string {
  if (found === undefined) throw new Error(`no ${what} in ${html}`);
  return found;
}
