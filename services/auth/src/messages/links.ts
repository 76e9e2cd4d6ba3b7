import type { MailKind } from '../config/mail.ts';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { type AuditAction, type AuditActor, auditEntry } from '../db/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Randomness } from '../keys/random.ts';
import type { User } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import { hashOneTimeToken, otpDigits } from '../verification/one-time-tokens.ts';
import type { OneTimeToken, OneTimeTokenType } from '../verification/store.ts';

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

/** What a link in a mail is made of. */
interface ActionLinkParts {
  /** API_EXTERNAL_URL. */
  readonly externalUrl: string;
  /** Resolved against `externalUrl`: a path that begins with `/` takes the place of its whole path. */
  readonly path: string;
  /** Hash of the code, with its prefix. */
  readonly token: string;
  /** What `/verify` is to do: `signup`, `recovery`, … */
  readonly type: string;
  /** Where the user goes in the end; the allow-list has been asked. */
  readonly redirectTo: string;
}

/** Characters that a query may hold as they are. Clients look for the target in the link, so that it is only encoded when it must be. */
const plainTarget = /^[\w:/?.~!$'()*,;@-]*$/;

/** The link that is mailed. */
function actionLink({ externalUrl, path, token, type, redirectTo }: ActionLinkParts): string {
  const { origin, pathname } = new URL(path, externalUrl);
  const target = plainTarget.test(redirectTo) ? redirectTo : encodeURIComponent(redirectTo);
  return `${origin}${pathname}?token=${token}&type=${type}&redirect_to=${target}`;
}

/** Settings that links are made from. */
type LinkSettingName =
  | 'siteUrl'
  | 'apiExternalUrl'
  | 'mailerOtpLength'
  | 'jwtSecret'
  | 'dbSharedWithGotrue'
  | 'mailUrlPath:CONFIRMATION'
  | 'mailUrlPath:RECOVERY'
  | 'mailUrlPath:INVITE'
  | 'mailUrlPath:EMAIL_CHANGE';

type LinkSettings = Pick<Settings, LinkSettingName>;

/** A code, and what is kept of it. */
export interface LinkToken {
  readonly code: string;
  readonly token: OneTimeToken;
}

/** Makes a code for a contact. */
export function newLinkToken(
  { random, settings }: { readonly random: Randomness; readonly settings: LinkSettings },
  of: {
    readonly userId: string;
    readonly type: OneTimeTokenType;
    readonly contact: string;
    readonly flow: LinkFlow;
    readonly at: Date;
  },
): LinkToken {
  const code = random.otp(otpDigits(settings.mailerOtpLength));
  const prefix = of.flow === 'pkce' ? 'pkce_' : '';
  const { userId, type, contact: relatesTo, at } = of;
  const hash = hashOneTimeToken(relatesTo, code, settings);
  return {
    code,
    token: { userId, type, hash: `${prefix}${hash}`, relatesTo, at },
  };
}

/** The link of a token. */
export function linkOf(
  settings: LinkSettings,
  { path, type }: Pick<LinkTraits, 'path' | 'type'>,
  { hash, redirectTo }: { readonly hash: string; readonly redirectTo: string },
): string {
  return actionLink({
    externalUrl: settings.apiExternalUrl,
    path: settings[`mailUrlPath:${path}`],
    token: hash,
    type,
    redirectTo,
  });
}

/** Links that administrators make and hand over themselves. */
export type MadeLinkKind =
  | Exclude<LinkKind, 'email_change' | 'reauthentication'>
  | 'email_change_current'
  | 'email_change_new';

/** A link that nobody has been sent. */
export interface MadeLink {
  readonly actionLink: string;
  readonly emailOtp: string;
  readonly hashedToken: string;
  /** `signup`, `recovery`, …, `email_change_current`, `email_change_new`. */
  readonly verificationType: string;
  readonly redirectTo: string;
}

/** Makes a link, which takes the place of the user's last one of its kind. Nothing is sent, and no limit asked. */
export type MakeLink = (
  user: User,
  link: {
    readonly kind: MadeLinkKind;
    readonly redirectTo: string;
    /** For a change of email: the new address. */
    readonly newEmail?: string | undefined;
    /** Who the audit log names; the user when absent. */
    readonly actor?: AuditActor | undefined;
    readonly action?: AuditAction | undefined;
  },
  metadata: RequestMetadata,
) => Promise<MadeLink>;

/** Creates {@link MakeLink}. */
export function createMakeLink(deps: Context): MakeLink {
  const { store, settings } = deps;
  return async (user, { kind, redirectTo, newEmail, actor, action }, metadata) => {
    const { traits, type, verificationType } = describe(kind);
    const contact = kind === 'email_change_new' ? (newEmail ?? user.newEmail) : user.email;
    const { code, token } = newLinkToken(deps, {
      userId: user.id,
      type,
      contact,
      flow: 'implicit',
      at: new Date(metadata.nowMs),
    });
    const audit = auditEntry(actor ?? user, action ?? traits.action, {
      metadata,
      traits: { user_id: user.id, user_email: user.email },
    });
    await store.oneTimeTokens.replace([token], audit);
    return {
      actionLink: linkOf(settings, traits, { hash: token.hash, redirectTo }),
      emailOtp: code,
      hashedToken: token.hash,
      verificationType,
      redirectTo,
    };
  };
}

function describe(kind: MadeLinkKind): {
  readonly traits: LinkTraits;
  readonly type: OneTimeTokenType;
  readonly verificationType: string;
} {
  if (kind === 'email_change_current' || kind === 'email_change_new') {
    const type = kind === 'email_change_new' ? 'email_change_token_new' : 'email_change_token_current';
    return { traits: linkTraits.email_change, type, verificationType: kind };
  }
  const traits = linkTraits[kind];
  return { traits, type: traits.token, verificationType: traits.type };
}
