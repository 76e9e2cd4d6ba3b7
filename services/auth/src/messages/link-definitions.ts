import type { AuditAction } from '../audit/actions.ts';
import type { MailKind } from '../i18n/texts/mail-kinds.ts';
import type { OneTimeTokenType } from '../users/token-columns.ts';
import type { User } from '../users/user.ts';

/** Mails with a link; `reauthentication` has a code only. */
export type LinkKind =
  | 'confirmation'
  | 'recovery'
  | 'magiclink'
  | 'invite'
  | 'email_change'
  | 'reauthentication';

export interface LinkDefinition {
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
