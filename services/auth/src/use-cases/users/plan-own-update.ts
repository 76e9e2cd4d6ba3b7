import type { JsonObject } from '../../domain/json.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { SmsChannel } from '../../ports/sms-gateway.ts';
import type { DepsWith } from '../../services.ts';
import { readEmail, readPhone } from '../contact/read-contact.ts';
import { type CheckPasswordDeps, checkPassword } from '../passwords/check-password.ts';
import {
  type ChoosePasswordDeps,
  type ChosenPassword,
  createChoosePassword,
} from '../passwords/choose-password.ts';
import { readChannel } from '../phone/read-channel.ts';
import { checkMetadata } from './check-metadata.ts';
import {
  changesEmail,
  changesPhone,
  checkOwnUpdate,
  type Owner,
  type OwnUpdate,
} from './check-own-update.ts';

/** Of what a user asks to be changed, that which has to be read and checked. */
export interface OwnUpdateRequest {
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
}

/** When a new contact becomes the user's: at once, or when a code that is sent to it comes back. */
export type ContactChange = 'now' | 'confirmed' | undefined;

/** An update that may be made. */
export interface OwnUpdatePlan {
  readonly email: string;
  readonly emailChange: ContactChange;
  readonly phone: string;
  readonly phoneChange: ContactChange;
  readonly channel: SmsChannel;
  /** A new password, hashed; absent for none. */
  readonly chosen: ChosenPassword | undefined;
}

/** Reads and checks what a user wants to change of themselves. Nothing has changed when it throws. */
export type PlanOwnUpdate = (
  owner: Owner,
  request: OwnUpdateRequest,
  facts: RequestFacts,
) => Promise<OwnUpdatePlan>;

/** What that takes. */
export type PlanOwnUpdateDeps = ChoosePasswordDeps &
  CheckPasswordDeps &
  DepsWith<'store', 'jwtAdminRoles' | 'smsProvider' | 'mailerAutoconfirm' | 'smsAutoconfirm'>;

/** Creates {@link PlanOwnUpdate}. The order of the checks is that which clients of GoTrue know. */
export function createPlanOwnUpdate(deps: PlanOwnUpdateDeps): PlanOwnUpdate {
  const { store, settings } = deps;
  const choosePassword = createChoosePassword(deps);

  async function checkFree(update: OwnUpdate, user: User): Promise<void> {
    if (changesEmail(update, user) && (await store.users.findByEmail(update.email, user.aud)))
      throw errors.email_exists();
    if (changesPhone(update, user) && (await store.users.findByPhone(update.phone, user.aud)))
      throw errors.phone_exists();
  }

  function emailChangeOf(update: OwnUpdate, user: User): ContactChange {
    if (!changesEmail(update, user)) return undefined;
    // Somebody who was anonymous signs up with this; everybody else could take over an address that is not theirs.
    return settings.mailerAutoconfirm && user.isAnonymous ? 'now' : 'confirmed';
  }

  function phoneChangeOf(update: OwnUpdate, user: User): ContactChange {
    if (!changesPhone(update, user)) return undefined;
    return settings.smsAutoconfirm ? 'now' : 'confirmed';
  }

  return async (owner, request, facts) => {
    const { user } = owner;
    const { email = '', phone = '', password, currentPassword, nonce = '' } = request;
    const update: OwnUpdate = {
      email: email === '' ? '' : readEmail(email),
      phone: phone === '' ? '' : readPhone(phone),
      password,
      nonce,
      changesAppMetadata: request.appMetadata !== undefined,
    };
    const channel = readChannel(phone === '' ? undefined : request.channel, settings);
    if (password !== undefined) await checkPassword(password, deps);
    checkOwnUpdate(update, owner, settings);
    checkMetadata({ userMetadata: request.data, appMetadata: request.appMetadata }, user);
    await checkFree(update, user);
    return {
      email: update.email,
      emailChange: emailChangeOf(update, user),
      phone: update.phone,
      phoneChange: phoneChangeOf(update, user),
      channel,
      chosen:
        password === undefined
          ? undefined
          : await choosePassword(owner, { password, currentPassword, nonce }, facts),
    };
  };
}
