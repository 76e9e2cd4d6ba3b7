import { isAppError } from '@tollgate/kit/errors';
import { type AuditActor, auditEntry } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { type FlowType, pkcePrefix } from '../flows/pkce.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { userLanguages } from '../i18n/languages.ts';
import { hashOneTimeToken, otpDigits } from '../one-time-tokens/hash.ts';
import type { OneTimeToken } from '../one-time-tokens/store.ts';
import type { OneTimeTokenType } from '../users/token-columns.ts';
import { toUserJson, type User } from '../users/user.ts';
import type { MessagesContext } from './context.ts';
import { type LinkDefinition, type LinkKind, linkDefinitions } from './link-definitions.ts';
import type { OutgoingMail } from './mailer.ts';
import { enforceMessageQuota, secondsUntilNext, tooSoon } from './quotas.ts';
/** A code with the token that is stored for it. */
export interface LinkToken {
  readonly code: string;
  readonly token: OneTimeToken;
}

export function newLinkToken(
  { random, settings }: MessagesContext,
  {
    userId,
    type,
    contact: relatesTo,
    flow,
    at,
  }: {
    readonly userId: string;
    readonly type: OneTimeTokenType;
    readonly contact: string;
    readonly flow: FlowType;
    readonly at: Date;
  },
): LinkToken {
  const code = random.otp(otpDigits(settings.mailerOtpLength));
  const hash = hashOneTimeToken(relatesTo, code, settings);
  const prefix = flow === 'pkce' ? pkcePrefix : '';
  return { code, token: { userId, type, hash: `${prefix}${hash}`, relatesTo, at } };
}

/**
 * Characters that may stay unencoded in a query: clients search the link for the redirect target.
 */
const plainTarget = /^[\w:/?.~!$'()*,;@-]*$/;

/** The URL of a link. The path of the setting is resolved against `base`. */
export function linkUrl(
  settings: Settings,
  { path, type }: Pick<LinkDefinition, 'path' | 'type'>,
  {
    hash,
    redirectTo,
    base = settings.apiExternalUrl,
  }: { readonly hash: string; readonly redirectTo: string; readonly base?: string | undefined },
): string {
  const { origin, pathname } = new URL(settings[`mailUrlPath:${path}`], base);
  const target = plainTarget.test(redirectTo) ? redirectTo : encodeURIComponent(redirectTo);
  return `${origin}${pathname}?token=${hash}&type=${type}&redirect_to=${target}`;
}

interface LinkRequest {
  readonly kind: LinkKind;
  /** Result of `redirectTarget`. */
  readonly redirectTo: string;
  readonly flow: FlowType;
  /** Only a change of email has it. */
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
  context: MessagesContext,
  user: User,
  link: LinkRequest,
  metadata: RequestMetadata,
): Promise<void> {
  const { store, background, settings } = context;
  const { action, name, sentAt, spacingMs: defaultSpacingMs } = linkDefinitions[link.kind];
  const spacingMs = settings.smtpMaxFrequencyMs ?? defaultSpacingMs;
  const waitSeconds = secondsUntilNext(sentAt?.(user), spacingMs, metadata.nowMs);
  if (waitSeconds > 0) throw tooSoon('email', waitSeconds);
  if (!link.quotaTaken) await enforceMessageQuota(context, 'email', metadata.nowMs);

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
    throw tooSoon('email', Math.ceil(spacingMs / 1000));

  const deliver = () => sendMails(context, { user, link, addressed, tokens }, metadata);
  // The response must not depend on the mail server: its latency and errors disclose that there is
  // a user.
  if (settings.uniformAnswers) return background.run(`${name} mail`, deliver);
  try {
    await deliver();
  } catch (cause) {
    // The error of a hook.
    if (isAppError(cause)) throw cause;
    throw errors.unexpected_failure({ message: `Error sending ${name} email`, cause });
  }
}

function newTokens(
  context: MessagesContext,
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
  { settings }: MessagesContext,
  {
    user,
    link,
    token: { code, token, to },
    metadata,
  }: {
    readonly user: User;
    readonly link: LinkRequest;
    readonly token: AddressedToken;
    readonly metadata: RequestMetadata;
  },
): OutgoingMail {
  const definition = linkDefinitions[link.kind];
  return {
    kind: definition.mail,
    to,
    // The language of an administrator's request is not that of the user.
    languages: userLanguages(user, link.actor === undefined ? metadata : {}),
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
        ConfirmationURL: linkUrl(settings, definition, {
          hash: token.hash,
          redirectTo: link.redirectTo,
          base: metadata.linkOrigin,
        }),
      }),
    },
  };
}

/**
 * The hook sends all mails of a request. In a secure change of email, `token` belongs to the
 * current address and `token_new` to the new one; the hashes are the other way round, as in GoTrue.
 */
function toHookPayload(
  { settings }: MessagesContext,
  {
    user,
    link,
    addressed,
  }: {
    readonly user: User;
    readonly link: LinkRequest;
    readonly addressed: readonly [AddressedToken, ...AddressedToken[]];
  },
  { linkOrigin }: RequestMetadata,
) {
  const [first, current] = addressed;
  return {
    user: toUserJson({ ...user, newEmail: link.newEmail ?? user.newEmail }),
    email_data: {
      token: (current ?? first).code,
      token_hash: first.token.hash,
      redirect_to: link.redirectTo,
      email_action_type: linkDefinitions[link.kind].type,
      site_url: linkOrigin ?? settings.apiExternalUrl,
      token_new: current === undefined ? '' : first.code,
      token_hash_new: current?.token.hash ?? '',
    },
  };
}

/** Withdraws the tokens if a mail cannot be sent. */
async function sendMails(
  context: MessagesContext,
  {
    tokens,
    ...mail
  }: {
    readonly user: User;
    readonly link: LinkRequest;
    readonly addressed: readonly [AddressedToken, ...AddressedToken[]];
    readonly tokens: readonly [OneTimeToken, ...OneTimeToken[]];
  },
  metadata: RequestMetadata,
): Promise<void> {
  const { mailer, hooks, store } = context;
  try {
    if (hooks.enabled.has('SEND_EMAIL'))
      await hooks.call('SEND_EMAIL', toHookPayload(context, mail, metadata), metadata);
    else for (const token of mail.addressed) await mailer.send(toMail(context, { ...mail, token, metadata }));
  } catch (error) {
    await store.oneTimeTokens.withdraw(tokens);
    throw error;
  }
}
