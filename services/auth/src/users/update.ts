import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import type { Store } from '../db/store.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createSendPhoneCode } from '../messages/phone-codes.ts';
import { createNotify } from '../messages/send.ts';
import { createSendLink } from '../messages/send-link.ts';
import type { ChosenPassword } from '../passwords/change.ts';
import { type CodeChallenge, createStartFlow, flowOf } from '../sign-in/pkce.ts';
import type { Contact } from '../sign-up/input.ts';
import type { OneTimeTokenType } from '../verification/store.ts';
import {
  createPlanOwnUpdate,
  type Owner,
  type OwnUpdatePlan,
  type OwnUpdateRequest,
} from './check-update.ts';
import type { UserChanges } from './user.ts';
import { contactIdentityData, type User } from './user.ts';

/**
 * Gives a user an email or a phone that they have confirmed, or need not: it takes the place of the one they had, and becomes an
 * identity. A user who was anonymous no longer is. All their one-time tokens are taken out of use, but those of the types in `keep`.
 * Answers the user as changed.
 *
 * @throws AppError `email_exists` or `phone_exists` when somebody else has it by now.
 */
export type ChangeContact = (
  user: User,
  contact: Contact,
  metadata: RequestMetadata,
  options?: { readonly keep?: readonly OneTimeTokenType[] },
) => Promise<User>;

/** Creates {@link ChangeContact}. */
export function createChangeContact({ store }: Pick<Context, 'store'>): ChangeContact {
  return (user, contact, metadata, { keep = [] } = {}) => {
    const at = new Date(metadata.nowMs);
    const value = contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone };
    const data = contactIdentityData({ userId: user.id, contact: value, verified: true, data: {} });
    return store.transaction(async (transaction) => {
      const updated = await transaction.users.update(user.id, changesOf(user, contact, at), {
        at,
        audit: auditEntry(user, 'user_modified', { metadata }),
        identities: [{ provider: contact.kind, providerId: user.id, data }],
      });
      if (!updated.ok) throw errors[updated.reason === 'not_found' ? 'user_not_found' : updated.reason]();
      await transaction.oneTimeTokens.clear(user.id, { except: keep });
      return updated.user;
    });
  };
}

function changesOf(user: User, contact: Contact, at: Date): UserChanges {
  const common = { isAnonymous: false, appMetadata: providersWith(user, contact.kind) };
  return contact.kind === 'email'
    ? {
        ...common,
        email: contact.email,
        emailConfirmedAt: at,
        newEmail: null,
        emailChangeConfirmStatus: 0,
      }
    : { ...common, phone: contact.phone, phoneConfirmedAt: at, newPhone: null };
}

function providersWith({ appMetadata, identities }: User, provider: string) {
  const providers = new Set([...identities.map((identity) => identity.provider), provider]);
  return { provider: appMetadata.provider ?? provider, providers: [...providers] };
}

/** What a user asks to be changed; whatever is absent, or for contacts and the nonce empty, stays. */
interface OwnUpdateInput extends OwnUpdateRequest {
  /** Asks that the link in the mail answers a code. */
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
}

/** Changes the user who asks. A new email or phone has to be confirmed first, unless nobody has to confirm any. */
export type UpdateOwnUser = (owner: Owner, input: OwnUpdateInput, metadata: RequestMetadata) => Promise<User>;

/** Creates {@link UpdateOwnUser}. Codes leave before anything is changed: where one cannot be sent, nothing is. */
export function createUpdateOwnUser(deps: Context): UpdateOwnUser {
  const { store } = deps;
  const planUpdate = createPlanOwnUpdate(deps);
  const sendLink = createSendLink(deps);
  const sendPhoneCode = createSendPhoneCode(deps);
  const startFlow = createStartFlow(deps);
  const changeContact = createChangeContact(deps);
  const notify = createNotify(deps);

  /** Answers the types of the tokens that have left. */
  async function sendCodes(
    user: User,
    { plan, input }: { readonly plan: OwnUpdatePlan; readonly input: OwnUpdateInput },
    metadata: RequestMetadata,
  ): Promise<OneTimeTokenType[]> {
    const sent: OneTimeTokenType[] = [];
    if (plan.emailChange === 'confirmed') {
      const { challenge, redirectTo } = input;
      const link = { redirectTo, flow: flowOf(challenge), newEmail: plan.email } as const;
      await sendLink(user, { kind: 'email_change', ...link }, metadata);
      // After the link: one that is refused must not get its challenge in the place of that which the user has a link for.
      if (challenge !== undefined)
        await startFlow({ ...challenge, userId: user.id, authenticationMethod: 'email_change' }, metadata);
      sent.push('email_change_token_new', 'email_change_token_current');
    }
    if (plan.phoneChange === 'confirmed') {
      const { phone, channel } = plan;
      await sendPhoneCode(user, { kind: 'phone_change', phone, channel }, metadata);
      sent.push('phone_change_token');
    }
    return sent;
  }

  /** One statement, unless a new password takes more with it. */
  function write(
    owner: Owner,
    { changes, chosen, keep }: { changes: UserChanges; chosen: OwnUpdatePlan['chosen']; keep: Keep },
    metadata: RequestMetadata,
  ): Promise<User> {
    if (chosen === undefined) return writeChanges(store, owner.user, { changes, metadata });
    return store.transaction(async (within) => {
      await endOtherAccess(within, owner, { chosen, keep, metadata });
      return writeChanges(within, owner.user, { changes, metadata });
    });
  }

  return async (owner, input, metadata) => {
    const plan = await planUpdate(owner, input, metadata);
    const keep = await sendCodes(owner.user, { plan, input }, metadata);
    const changes = updateOwnUserChangesOf(plan, input);
    let user = await write(owner, { changes, chosen: plan.chosen, keep }, metadata);
    if (plan.chosen !== undefined) notify(user, 'PASSWORD_CHANGED_NOTIFICATION');
    if (plan.emailChange === 'now')
      user = await changeContact(user, { kind: 'email', email: plan.email }, metadata, { keep });
    if (plan.phoneChange === 'now') {
      user = await changeContact(user, { kind: 'phone', phone: plan.phone }, metadata, { keep });
      notify(user, 'PHONE_CHANGED_NOTIFICATION', { Phone: user.phone, OldPhone: owner.user.phone });
    }
    return user;
  };
}

/** Types of tokens that this update has sent. */
type Keep = readonly OneTimeTokenType[];

function updateOwnUserChangesOf(plan: OwnUpdatePlan, { data, appMetadata }: OwnUpdateInput): UserChanges {
  return {
    ...(plan.chosen && { passwordHash: plan.chosen.hash }),
    ...(data && { userMetadata: data }),
    ...(appMetadata && { appMetadata }),
    ...(plan.emailChange === 'confirmed' && { newEmail: plan.email, emailChangeConfirmStatus: 0 }),
    ...(plan.phoneChange === 'confirmed' && { newPhone: plan.phone }),
  };
}

async function writeChanges(
  store: Store,
  user: User,
  { changes, metadata }: { readonly changes: UserChanges; readonly metadata: RequestMetadata },
): Promise<User> {
  const of = { at: new Date(metadata.nowMs), audit: auditEntry(user, 'user_modified', { metadata }) };
  const updated = await store.users.update(user.id, changes, of);
  if (!updated.ok) throw errors[updated.reason === 'not_found' ? 'user_not_found' : updated.reason]();
  return updated.user;
}

/** Whoever else knew the old password is out: all other sessions end, and tokens that were sent before are good for nothing. */
async function endOtherAccess(
  store: Store,
  { user, session }: Owner,
  {
    chosen,
    keep,
    metadata,
  }: { readonly chosen: ChosenPassword; readonly keep: Keep; readonly metadata: RequestMetadata },
): Promise<void> {
  const { nonceToken } = chosen;
  if (nonceToken !== undefined && !(await store.oneTimeTokens.spend(nonceToken)))
    throw errors.reauthentication_not_valid();
  await store.oneTimeTokens.clear(user.id, { except: keep });
  const audit = auditEntry(user, 'user_updated_password', { metadata });
  await store.sessions.end('others', { userId: user.id, sessionId: session?.id }, audit);
}
