import type { Context } from '../context.ts';
import { type AuditActor, auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import { isUuid } from '../http/api.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { isImportableHash } from '../passwords/imported-hashes.ts';
import { checkPasswordLength } from '../passwords/policy.ts';
import { readEmail, readPhone } from '../sign-up/input.ts';
import type { NewIdentity, NewUser } from '../users/user.ts';
import { contactIdentityData, parseBan, type User } from '../users/user.ts';
import { checkMetadata, type JsonObject } from '../users/user-json.ts';

/** What an administrator says of a user; whatever is absent, or for texts empty, is not said. */
export interface AdminUserInput {
  readonly role?: string | undefined;
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  /** Of another server. */
  readonly passwordHash?: string | undefined;
  readonly emailConfirm?: boolean | undefined;
  readonly phoneConfirm?: boolean | undefined;
  readonly userMetadata?: JsonObject | undefined;
  readonly appMetadata?: JsonObject | undefined;
  /** A duration in Go's syntax, or `none`. */
  readonly banDuration?: string | undefined;
}

/** What the column holds. */
const maxNameChars = 255;

/** An email as it is kept, empty for none. @throws AppError `validation_failed`. */
export function readOptionalEmail(email: string | undefined): string {
  return email === undefined || email === '' ? '' : readEmail(email);
}

/** A phone as it is kept, empty for none. @throws AppError `validation_failed`. */
export function readOptionalPhone(phone: string | undefined): string {
  return phone === undefined || phone === '' ? '' : readPhone(phone);
}

/** When a ban ends; `null` lifts it, undefined says nothing of it. @throws AppError `validation_failed`. */
export function readBan(text: string | undefined, { nowMs }: RequestMetadata): Date | null | undefined {
  if (text === undefined || text === '') return undefined;
  const end = parseBan(text, nowMs);
  if (end === undefined)
    throw errors.validation_failed({
      message: `invalid format for ban duration: ${JSON.stringify(text.slice(0, 64))} is no duration such as 24h, and not none`,
    });
  return end;
}

/** A role or an audience, empty for none. @throws AppError `validation_failed`. */
export function readName(member: 'role' | 'aud', text = ''): string {
  if (text.length > maxNameChars)
    throw errors.validation_failed({ message: `${member} is longer than ${maxNameChars} characters` });
  return text;
}

/**
 * Makes sure that there is a password or a hash, or neither, and that the hash can be verified.
 *
 * @throws AppError `validation_failed`.
 */
export function checkOneSecret({ password = '', passwordHash = '' }: AdminUserInput): void {
  if (password !== '' && passwordHash !== '')
    throw errors.validation_failed({ message: 'Only a password or a password hash should be provided' });
  if (passwordHash !== '' && !isImportableHash(passwordHash))
    throw errors.validation_failed({
      message: 'password_hash must be one of bcrypt, argon2i, argon2id (v=19) or fbscrypt, within limits',
    });
}

/** The hash that a user is to have: of the password, or the one given; undefined for none. */
export async function hashOf(
  { password = '', passwordHash = '' }: AdminUserInput,
  passwords: Context['passwords'],
): Promise<string | undefined> {
  if (password !== '') return passwords.hash(password);
  return passwordHash === '' ? undefined : passwordHash;
}

/** Names a user in the audit log, as what somebody else did something to. */
export function subjectOf({ id, email, phone }: { id: string; email: string; phone: string }): JsonObject {
  return { user_id: id, user_email: email, user_phone: phone };
}

/** A user as an administrator wants it. */
interface NewUserInput extends AdminUserInput {
  /** Made up when absent. */
  readonly id?: string | undefined;
  readonly aud: string;
}

/** Creates a user, who need not confirm anything that the administrator vouches for. Nothing is sent. */
export type CreateUser = (input: NewUserInput, actor: AuditActor, metadata: RequestMetadata) => Promise<User>;

const nilUuid = '00000000-0000-0000-0000-000000000000';

/**
 * Creates {@link CreateUser}. The order of the checks is that which clients of GoTrue know. The policy for passwords does not bind
 * administrators; who gets no password has none, and signs in otherwise.
 */
export function createCreateUser(
  deps: Pick<Context, 'store' | 'settings' | 'random' | 'passwords'>,
): CreateUser {
  const { store, random, passwords, settings } = deps;

  async function checkFree(user: Pick<NewUser, 'id' | 'email' | 'phone'>): Promise<void> {
    const taken = await store.users.findTaken(user);
    if (taken === 'email') throw errors.email_exists();
    if (taken === 'phone') throw errors.phone_exists();
    if (taken === 'id') throw errors.user_already_exists({ message: 'A user with this id already exists' });
  }

  return async (input, actor, metadata) => {
    const { email: givenEmail = '', phone: givenPhone = '', password = '' } = input;
    if (givenEmail === '' && givenPhone === '')
      throw errors.validation_failed({ message: 'Cannot create a user without either an email or phone' });
    const email = readOptionalEmail(givenEmail);
    const phone = readOptionalPhone(givenPhone);
    const id = readId(input.id) ?? random.uuid();
    await checkFree({ id, email, phone });
    checkOneSecret(input);
    checkPasswordLength(password);
    checkMetadata(input);
    const bannedUntil = readBan(input.banDuration, metadata) ?? undefined;
    const user: NewUser = {
      ...metadataOf(input, { id, email, phone }),
      id,
      aud: readName('aud', input.aud),
      role: readName('role', input.role) || settings.jwtDefaultGroupName,
      email,
      phone,
      passwordHash: await hashOf(input, passwords),
      emailConfirmedAt: isVouched(email, input.emailConfirm) ? new Date(metadata.nowMs) : undefined,
      phoneConfirmedAt: isVouched(phone, input.phoneConfirm) ? new Date(metadata.nowMs) : undefined,
      isAnonymous: false,
      createdAt: new Date(metadata.nowMs),
      bannedUntil,
    };
    const audit = auditEntry(actor, 'user_signedup', { metadata, traits: subjectOf(user) });
    if (!(await store.users.insert(user, audit))) {
      await checkFree(user); // somebody else was faster
      throw errors.conflict();
    }
    const created = await store.users.findById(id);
    if (created === undefined) throw errors.user_not_found();
    return created;
  };
}

function readId(id = ''): string | undefined {
  if (id === '') return undefined;
  if (!isUuid(id)) throw errors.validation_failed({ message: 'ID must conform to the uuid v4 format' });
  if (id === nilUuid) throw errors.validation_failed({ message: 'ID cannot be a nil uuid' });
  return id.toLowerCase();
}

function isVouched(contact: string, confirm: boolean | undefined): boolean {
  return contact !== '' && confirm === true;
}

/** Metadata stays as it was sent, but says what the administrator vouches for. */
function metadataOf(
  input: NewUserInput,
  { id, email, phone }: { readonly id: string; readonly email: string; readonly phone: string },
): Pick<NewUser, 'identities' | 'appMetadata' | 'userMetadata'> {
  const emailIsVouched = isVouched(email, input.emailConfirm);
  const phoneIsVouched = isVouched(phone, input.phoneConfirm);
  const identities = [
    ...(email === '' ? [] : [identityOf(id, { email }, emailIsVouched)]),
    ...(phone === '' ? [] : [identityOf(id, { phone }, phoneIsVouched)]),
  ];
  const providers = identities.map(({ provider }) => provider);
  return {
    identities,
    appMetadata: withoutNulls({ provider: providers[0] ?? '', providers, ...input.appMetadata }),
    userMetadata: {
      ...input.userMetadata,
      ...(emailIsVouched && { email_verified: true }),
      ...(phoneIsVouched && { phone_verified: true }),
    },
  };
}

function identityOf(
  userId: string,
  contact: { readonly email: string } | { readonly phone: string },
  verified: boolean,
): NewIdentity {
  const data = contactIdentityData({ userId, contact, verified, data: {} });
  return { provider: 'email' in contact ? 'email' : 'phone', providerId: userId, data };
}

/** What is said of a user is merged into what the server says, and there a `null` takes a key away. */
function withoutNulls(metadata: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null));
}
