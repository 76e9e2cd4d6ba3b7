import type { AuditAction, AuditActor } from '../../domain/audit-entry.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { User } from '../../domain/user.ts';
import type { OneTimeTokenType } from '../../ports/one-time-token-store.ts';
import type { MailKind } from '../../settings/mail-text-settings.ts';

/** What a mail with a link (or, for `reauthentication`, with a code only) is for. */
export type LinkKind =
  | 'confirmation'
  | 'recovery'
  | 'magiclink'
  | 'invite'
  | 'email_change'
  | 'reauthentication';

/** How the link ends: with tokens in the fragment, or with a code that is exchanged for them. */
export type LinkFlow = 'implicit' | 'pkce';

/** A link that somebody is to get. */
export interface LinkRequest {
  readonly kind: LinkKind;
  /** Where it leads in the end; from `redirectTarget`. */
  readonly redirectTo: string;
  readonly flow: LinkFlow;
  /** For a change of email: the new address. */
  readonly newEmail?: string | undefined;
  /** `{{ .Data }}` of the template; the metadata of the user when absent. */
  readonly data?: JsonObject | undefined;
  /** Who the audit log names; the user when absent. */
  readonly actor?: AuditActor | undefined;
  /** Whether the mail has been counted against the quota of mails. */
  readonly quotaTaken?: boolean | undefined;
}

/** What the kinds of link differ in. */
export interface LinkTraits {
  readonly mail: MailKind;
  readonly token: OneTimeTokenType;
  /** `type` of the link. */
  readonly type: string;
  /** Setting that has the path of the link. */
  readonly path: 'CONFIRMATION' | 'RECOVERY' | 'INVITE' | 'EMAIL_CHANGE';
  /** When the last one was sent; undefined for a kind that has no spacing. */
  readonly sentAt: ((user: User) => Date | undefined) | undefined;
  /** Shortest time between two when SMTP_MAX_FREQUENCY is not set. */
  readonly spacingMs: number;
  readonly action: AuditAction;
  /** Completes "Error sending … email". */
  readonly name: string;
}

const minuteMs = 60_000;

/** The kinds of link. */
export const linkTraits: Readonly<Record<LinkKind, LinkTraits>> = {
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
