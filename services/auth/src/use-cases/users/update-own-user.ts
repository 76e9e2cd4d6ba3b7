import { auditEntry } from '../../domain/audit-entry.ts';
import type { JsonObject } from '../../domain/json.ts';
import { type CodeChallenge, flowOf } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { OneTimeTokenType } from '../../ports/one-time-token-store.ts';
import type { SmsChannel } from '../../ports/sms-gateway.ts';
import type { UserChanges } from '../../ports/user-store.ts';
import type { DepsWith } from '../../services.ts';
import type { NotificationKind } from '../../settings/mail-text-settings.ts';
import { readEmail, readPhone } from '../contact/read-contact.ts';
import { createSendLink, type SendLinkDeps } from '../links/send-link.ts';
import { createNotify } from '../notifications/notify.ts';
import { checkPassword } from '../passwords/check-password.ts';
import {
  type ChoosePasswordDeps,
  type ChosenPassword,
  createChoosePassword,
} from '../passwords/choose-password.ts';
import { readChannel } from '../phone/read-channel.ts';
import { createSendPhoneCode, type PhoneCodeDeps } from '../phone/send-phone-code.ts';
import { createStartFlow } from '../pkce/start-flow.ts';
import { createChangeContact } from './change-contact.ts';
import {
  changesEmail,
  changesPhone,
  checkOwnUpdate,
  type Owner,
  type OwnUpdate,
} from './check-own-update.ts';

/** What a user asks to be changed; whatever is absent, or for texts empty, stays. */
export interface OwnUpdateInput {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  readonly currentPassword?: string | undefined;
  readonly nonce?: string | undefined;
  /** Merged into what the user says of themselves. */
  readonly data?: JsonObject | undefined;
  /** Merged into what the operator says of them; for administrators. */
  readonly appMetadata?: JsonObject | undefined;
  readonly channel?: string | undefined;
  /** Asks that the link in the mail answers a code. */
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
}

/** Changes the user who asks. A new email or phone has to be confirmed first, unless nobody has to confirm any. */
export type UpdateOwnUser = (owner: Owner, input: OwnUpdateInput, facts: RequestFacts) => Promise<User>;

/** What that takes. */
export type UpdateOwnUserDeps = SendLinkDeps &
  PhoneCodeDeps &
  ChoosePasswordDeps &
  DepsWith<
    never,
    | 'jwtAdminRoles'
    | 'passwordMinLength'
    | 'passwordRequiredCharacters'
    | 'smsProvider'
    | `mailNotification:${NotificationKind}`
  >;

/** The update, read and checked, with the password hashed. */
interface Plan extends OwnUpdate {
  readonly channel: SmsChannel;
  readonly chosen: ChosenPassword | undefined;
}

/** What is done about a new contact: it is there at once, or waits for a confirmation. */
interface ContactPlan {
  readonly emailNow: boolean;
  readonly emailLater: boolean;
  readonly phoneNow: boolean;
  readonly phoneLater: boolean;
}

/**
 * Creates {@link UpdateOwnUser}. Codes leave before anything is changed: where one cannot be sent, nothing is. The order of the checks
 * is that which clients of GoTrue know.
 */
export function createUpdateOwnUser(deps: UpdateOwnUserDeps): UpdateOwnUser {
  const { store, settings } = deps;
  const choosePassword = createChoosePassword(deps);
  const sendLink = createSendLink(deps);
  const sendPhoneCode = createSendPhoneCode(deps);
  const startFlow = createStartFlow(deps);
  const changeContact = createChangeContact(deps);
  const notify = createNotify(deps);

  async function planOf(owner: Owner, input: OwnUpdateInput, facts: RequestFacts): Promise<Plan> {
    const { email = '', phone = '', password, nonce = '' } = input;
    const update: OwnUpdate = {
      email: email === '' ? '' : readEmail(email),
      phone: phone === '' ? '' : readPhone(phone),
      password,
      nonce,
      changesAppMetadata: input.appMetadata !== undefined,
    };
    const channel = readChannel(phone === '' ? undefined : input.channel, settings);
    if (password !== undefined) checkPassword(password, settings);
    checkOwnUpdate(update, owner, settings);
    await checkFree(update, owner.user);
    const chosen =
      password === undefined
        ? undefined
        : await choosePassword(owner, { password, currentPassword: input.currentPassword, nonce }, facts);
    return { ...update, channel, chosen };
  }

  async function checkFree(update: OwnUpdate, user: User): Promise<void> {
    if (changesEmail(update, user) && (await store.users.findByEmail(update.email, user.aud)))
      throw errors.email_exists();
    if (changesPhone(update, user) && (await store.users.findByPhone(update.phone, user.aud)))
      throw errors.phone_exists();
  }

  function contactsOf(plan: Plan, user: User): ContactPlan {
    // Somebody who was anonymous signs up with this; everybody else could take over an address that is not theirs.
    const emailIsFree = settings.mailerAutoconfirm && user.isAnonymous;
    const email = changesEmail(plan, user);
    const phone = changesPhone(plan, user);
    return {
      emailNow: email && emailIsFree,
      emailLater: email && !emailIsFree,
      phoneNow: phone && settings.smsAutoconfirm,
      phoneLater: phone && !settings.smsAutoconfirm,
    };
  }

  /** Answers the types of the tokens that left. */
  async function sendCodes(
    user: User,
    { plan, contacts, input }: { plan: Plan; contacts: ContactPlan; input: OwnUpdateInput },
    facts: RequestFacts,
  ): Promise<OneTimeTokenType[]> {
    const sent: OneTimeTokenType[] = [];
    if (contacts.emailLater) {
      const { challenge, redirectTo } = input;
      if (challenge !== undefined)
        await startFlow({ ...challenge, userId: user.id, authenticationMethod: 'email_change' }, facts);
      const link = { redirectTo, flow: flowOf(challenge), newEmail: plan.email } as const;
      await sendLink(user, { kind: 'email_change', ...link }, facts);
      sent.push('email_change_token_new', 'email_change_token_current');
    }
    if (contacts.phoneLater) {
      const { phone, channel } = plan;
      await sendPhoneCode(user, { kind: 'phone_change', phone, channel }, facts);
      sent.push('phone_change_token');
    }
    return sent;
  }

  /** The update itself; a new password ends all other sessions, and every token that has been sent before. */
  function change(
    { user, session }: Owner,
    { plan, changes, sent }: { plan: Plan; changes: UserChanges; sent: readonly OneTimeTokenType[] },
    facts: RequestFacts,
  ): Promise<User> {
    const of = { at: new Date(facts.nowMs), audit: auditEntry(user, 'user_modified', { facts }) };
    return store.transaction(async (transaction) => {
      if (plan.chosen !== undefined) {
        const { nonceToken } = plan.chosen;
        if (nonceToken !== undefined && !(await transaction.oneTimeTokens.spend(nonceToken)))
          throw errors.reauthentication_not_valid();
        await transaction.oneTimeTokens.clear(user.id, { except: sent });
        const audit = auditEntry(user, 'user_updated_password', { facts });
        await transaction.sessions.end('others', { userId: user.id, sessionId: session?.id }, audit);
      }
      const updated = await transaction.users.update(user.id, changes, of);
      if (!updated.ok) throw errors[updated.reason === 'not_found' ? 'user_not_found' : updated.reason]();
      return updated.user;
    });
  }

  return async (owner, input, facts) => {
    const plan = await planOf(owner, input, facts);
    const contacts = contactsOf(plan, owner.user);
    const sent = await sendCodes(owner.user, { plan, contacts, input }, facts);
    const changes: UserChanges = {
      ...(plan.chosen && { passwordHash: plan.chosen.hash }),
      ...(input.data && { userMetadata: input.data }),
      ...(input.appMetadata && { appMetadata: input.appMetadata }),
      ...(contacts.emailLater && { newEmail: plan.email, emailChangeConfirmStatus: 0 }),
      ...(contacts.phoneLater && { newPhone: plan.phone }),
    };
    let user = await change(owner, { plan, changes, sent }, facts);
    if (plan.chosen !== undefined) notify(user, 'PASSWORD_CHANGED_NOTIFICATION');
    if (contacts.emailNow) user = await changeContact(user, { kind: 'email', email: plan.email }, facts);
    if (contacts.phoneNow) {
      user = await changeContact(user, { kind: 'phone', phone: plan.phone }, facts);
      notify(user, 'PHONE_CHANGED_NOTIFICATION', { Phone: user.phone, OldPhone: owner.user.phone });
    }
    return user;
  };
}
