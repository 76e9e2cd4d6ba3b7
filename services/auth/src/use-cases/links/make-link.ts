import { type AuditAction, type AuditActor, auditEntry } from '../../domain/audit-entry.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import type { OneTimeTokenType } from '../../ports/one-time-token-store.ts';
import type { DepsWith } from '../../services.ts';
import { type LinkKind, type LinkTraits, linkTraits } from './link.ts';
import { type LinkSettingName, linkOf, newLinkToken } from './link-tokens.ts';

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
  facts: RequestFacts,
) => Promise<MadeLink>;

/** Creates {@link MakeLink}. */
export function createMakeLink(deps: DepsWith<'store' | 'random', LinkSettingName>): MakeLink {
  const { store, settings } = deps;
  return async (user, { kind, redirectTo, newEmail, actor, action }, facts) => {
    const { traits, type, verificationType } = describe(kind);
    const contact = kind === 'email_change_new' ? (newEmail ?? user.newEmail) : user.email;
    const { code, token } = newLinkToken(deps, {
      userId: user.id,
      type,
      contact,
      flow: 'implicit',
      at: new Date(facts.nowMs),
    });
    const audit = auditEntry(actor ?? user, action ?? traits.action, {
      facts,
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
