import type { Context } from '../context.ts';
import { type AuditActor, auditEntry } from '../db/audit-log.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { FlowType } from '../sign-in/pkce.ts';
import type { User } from '../users/user.ts';
import type { OneTimeToken } from '../verification/store.ts';
import { type LinkKind, type LinkToken, linkDefinitions, linkUrl, newLinkToken } from './links.ts';
import type { OutgoingMail } from './mailer.ts';
import { enforceMailQuota, secondsUntilNext, spacingMessage } from './quotas.ts';

interface LinkRequest {
  readonly kind: LinkKind;
  /** Result of `redirectTarget`. */
  readonly redirectTo: string;
  readonly flow: FlowType;
  /** For a change of email. */
  readonly newEmail?: string | undefined;
  /** Who the audit log names; the user if absent. */
  readonly actor?: AuditActor | undefined;
  /** Whether the mail already counts against the quota of mails. */
  readonly quotaTaken?: boolean | undefined;
}

/** A link token and the address that it is sent to. */
interface AddressedToken extends LinkToken {
  readonly to: string;
}

/**
 * Mails a link and a code, which replace the user's last ones of their kind. A secure change of
 * email sends one to each address.
 *
 * @throws AppError `over_email_send_rate_limit`; `unexpected_failure` if the mail server does not
 * accept the mail, in which case the user may request another one immediately.
 */
export async function sendLink(
  context: Context,
  user: User,
  link: LinkRequest,
  metadata: RequestMetadata,
): Promise<void> {
  const { store, background, settings } = context;
  const { action, name, sentAt, spacingMs: defaultSpacingMs } = linkDefinitions[link.kind];
  const spacingMs = settings.smtpMaxFrequencyMs ?? defaultSpacingMs;
  const waitSeconds = secondsUntilNext(sentAt?.(user), spacingMs, metadata.nowMs);
  if (waitSeconds > 0) throw tooSoon(waitSeconds);
  if (!link.quotaTaken) await enforceMailQuota(context, metadata.nowMs);

  const addressed = newTokens(context, { user, link, at: new Date(metadata.nowMs) });
  const [first, ...rest] = addressed;
  const tokens: [OneTimeToken, ...OneTimeToken[]] = [first.token, ...rest.map(({ token }) => token)];
  const audit = auditEntry(link.actor ?? user, action, {
    metadata,
    ...(link.actor && { traits: { user_id: user.id, user_email: user.email } }),
  });
  // Repeats the check of the spacing, for concurrent requests.
  const notSince = sentAt && new Date(metadata.nowMs - spacingMs);
  if (!(await store.oneTimeTokens.replace(tokens, audit, { notSince })))
    throw tooSoon(Math.ceil(spacingMs / 1000));

  const deliver = () => sendMails(context, { user, link, addressed }, tokens);
  // The response must not depend on the mail server: its latency and errors disclose that there is
  // a user.
  if (settings.uniformAnswers) return background.run(`${name} mail`, deliver);
  try {
    await deliver();
  } catch (cause) {
    throw errors.unexpected_failure({ message: `Error sending ${name} email`, cause });
  }
}

function tooSoon(seconds: number): RetryLaterError {
  const message = spacingMessage(seconds);
  return new RetryLaterError(errors.over_email_send_rate_limit({ message }), seconds);
}

function newTokens(
  context: Context,
  { user, link, at }: { readonly user: User; readonly link: LinkRequest; readonly at: Date },
): [AddressedToken, ...AddressedToken[]] {
  const common = { userId: user.id, flow: link.flow, at };
  const { token: type } = linkDefinitions[link.kind];
  if (link.kind !== 'email_change')
    return [{ ...newLinkToken(context, { ...common, type, contact: user.email }), to: user.email }];
  const to = link.newEmail ?? user.newEmail;
  const toNew = { ...newLinkToken(context, { ...common, type, contact: to }), to };
  const { mailerSecureEmailChangeEnabled, mailerAutoconfirm } = context.settings;
  if (!mailerSecureEmailChangeEnabled || mailerAutoconfirm || user.email === '') return [toNew];
  const current = { ...common, type: 'email_change_token_current', contact: user.email } as const;
  return [toNew, { ...newLinkToken(context, current), to: user.email }];
}

function toMail(
  { settings }: Context,
  {
    user,
    link,
    token: { code, token, to },
  }: {
    readonly user: User;
    readonly link: LinkRequest;
    readonly token: AddressedToken;
  },
): OutgoingMail {
  const definition = linkDefinitions[link.kind];
  return {
    kind: definition.mail,
    to,
    variables: {
      SiteURL: settings.siteUrl,
      Email: user.email,
      NewEmail: link.newEmail ?? user.newEmail,
      SendingTo: to,
      Token: code,
      Data: user.userMetadata,
      RedirectTo: link.redirectTo,
      ...(link.kind !== 'reauthentication' && {
        TokenHash: token.hash,
        ConfirmationURL: linkUrl(settings, definition, { hash: token.hash, redirectTo: link.redirectTo }),
      }),
    },
  };
}

/** Withdraws the tokens if a mail cannot be sent. */
async function sendMails(
  context: Context,
  {
    user,
    link,
    addressed,
  }: {
    readonly user: User;
    readonly link: LinkRequest;
    readonly addressed: readonly AddressedToken[];
  },
  tokens: readonly [OneTimeToken, ...OneTimeToken[]],
): Promise<void> {
  try {
    for (const token of addressed) await context.mailer.send(toMail(context, { user, link, token }));
  } catch (error) {
    await context.store.oneTimeTokens.withdraw(tokens);
    throw error;
  }
}
