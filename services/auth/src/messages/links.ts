import type { MailKind } from '../config/mail.ts';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { type AuditAction, type AuditActor, auditEntry } from '../db/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type FlowType, pkcePrefix } from '../sign-in/pkce.ts';
import type { User } from '../users/user.ts';
import { hashOneTimeToken, otpDigits } from '../verification/one-time-tokens.ts';
import type { OneTimeToken, OneTimeTokenType } from '../verification/store.ts';

/** Mails with a link; `reauthentication` has a code only. */
export type LinkKind =
  | 'confirmation'
  | 'recovery'
  | 'magiclink'
  | 'invite'
  | 'email_change'
  | 'reauthentication';

interface LinkDefinition {
  readonly mail: MailKind;
  readonly token: OneTimeTokenType;
  /** Query parameter `type` of the link. */
  readonly type: string;
  /** Suffix of the setting with the path of the link. */
  readonly path: 'CONFIRMATION' | 'RECOVERY' | 'INVITE' | 'EMAIL_CHANGE';
  /** When the last one was sent; absent for a kind without spacing. */
  readonly sentAt: ((user: User) => Date | undefined) | undefined;
  /** Minimum time between two mails unless SMTP_MAX_FREQUENCY is set. */
  readonly spacingMs: number;
  readonly action: AuditAction;
  /** Completes "Error sending … email". */
  readonly name: string;
}

const minuteMs = 60_000;

export const linkDefinitions: Readonly<Record<LinkKind, LinkDefinition>> = {
  confirmation: {
    mail: 'CONFIRMATION',
    token: 'confirmation_token',
    type: 'signup',
    path: 'CONFIRMATION',
    sentAt: (user) => user.confirmationSentAt,
    spacingMs: 15 * minuteMs,
    action: 'user_confirmation_requested',
    name: 'confirmation',
  },
  recovery: {
    mail: 'RECOVERY',
    token: 'recovery_token',
    type: 'recovery',
    path: 'RECOVERY',
    sentAt: (user) => user.recoverySentAt,
    spacingMs: minuteMs,
    action: 'user_recovery_requested',
    name: 'recovery',
  },
  magiclink: {
    mail: 'MAGIC_LINK',
    token: 'recovery_token',
    type: 'magiclink',
    path: 'RECOVERY',
    sentAt: (user) => user.recoverySentAt,
    spacingMs: minuteMs,
    action: 'user_recovery_requested',
    name: 'magic link',
  },
  invite: {
    mail: 'INVITE',
    token: 'confirmation_token',
    type: 'invite',
    path: 'INVITE',
    sentAt: undefined,
    spacingMs: 0,
    action: 'user_invited',
    name: 'invite',
  },
  email_change: {
    mail: 'EMAIL_CHANGE',
    token: 'email_change_token_new',
    type: 'email_change',
    path: 'EMAIL_CHANGE',
    sentAt: (user) => user.emailChangeSentAt,
    spacingMs: minuteMs,
    action: 'user_modified',
    name: 'email change',
  },
  reauthentication: {
    mail: 'REAUTHENTICATION',
    token: 'reauthentication_token',
    type: 'reauthentication',
    path: 'CONFIRMATION',
    sentAt: (user) => user.reauthenticationSentAt,
    spacingMs: minuteMs,
    action: 'user_reauthenticate_requested',
    name: 'reauthentication',
  },
};

/** A code with the token that is stored for it. */
export interface LinkToken {
  readonly code: string;
  readonly token: OneTimeToken;
}

export function newLinkToken(
  { random, settings }: Context,
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

/** The URL of a link. The path of the setting is resolved against API_EXTERNAL_URL. */
export function linkUrl(
  settings: Settings,
  { path, type }: Pick<LinkDefinition, 'path' | 'type'>,
  { hash, redirectTo }: { readonly hash: string; readonly redirectTo: string },
): string {
  const { origin, pathname } = new URL(settings[`mailUrlPath:${path}`], settings.apiExternalUrl);
  const target = plainTarget.test(redirectTo) ? redirectTo : encodeURIComponent(redirectTo);
  return `${origin}${pathname}?token=${hash}&type=${type}&redirect_to=${target}`;
}

/** Links that administrators request and send themselves. */
export type ActionLinkKind =
  | Exclude<LinkKind, 'email_change' | 'reauthentication'>
  | 'email_change_current'
  | 'email_change_new';

export interface ActionLink {
  readonly actionLink: string;
  readonly emailOtp: string;
  readonly hashedToken: string;
  /** `signup`, `recovery`, …, `email_change_current`, `email_change_new`. */
  readonly verificationType: string;
  readonly redirectTo: string;
}

/** Makes a link, which replaces the user's last one of its kind. Sends nothing; no limits apply. */
export async function makeLink(
  context: Context,
  {
    user,
    kind,
    redirectTo,
    newEmail = user.newEmail,
    actor,
  }: {
    readonly user: User;
    readonly kind: ActionLinkKind;
    readonly redirectTo: string;
    /** For a change of email. */
    readonly newEmail?: string | undefined;
    readonly actor: AuditActor;
  },
  metadata: RequestMetadata,
): Promise<ActionLink> {
  const { store, settings } = context;
  const { definition, type, verificationType } = getActionKind(kind);
  const contact = kind === 'email_change_new' ? newEmail : user.email;
  const at = new Date(metadata.nowMs);
  const { code, token } = newLinkToken(context, { userId: user.id, type, contact, flow: 'implicit', at });
  const audit = auditEntry(actor, definition.action, {
    metadata,
    traits: { user_id: user.id, user_email: user.email },
  });
  await store.oneTimeTokens.replace([token], audit);
  return {
    actionLink: linkUrl(settings, definition, { hash: token.hash, redirectTo }),
    emailOtp: code,
    hashedToken: token.hash,
    verificationType,
    redirectTo,
  };
}

function getActionKind(kind: ActionLinkKind): {
  readonly definition: LinkDefinition;
  readonly type: OneTimeTokenType;
  readonly verificationType: string;
} {
  if (kind === 'email_change_current' || kind === 'email_change_new') {
    const type = kind === 'email_change_new' ? 'email_change_token_new' : 'email_change_token_current';
    return { definition: linkDefinitions.email_change, type, verificationType: kind };
  }
  const definition = linkDefinitions[kind];
  return { definition, type: definition.token, verificationType: definition.type };
}
