import { parseBan } from '../../domain/ban-duration.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors } from '../../errors.ts';
import type { Services } from '../../services.ts';
import { readEmail, readPhone } from '../contact/read-contact.ts';

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
export function readBan(text: string | undefined, { nowMs }: RequestFacts): Date | null | undefined {
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
export function checkOneSecret(
  { password = '', passwordHash = '' }: AdminUserInput,
  passwords: Services['passwords'],
): void {
  if (password !== '' && passwordHash !== '')
    throw errors.validation_failed({ message: 'Only a password or a password hash should be provided' });
  if (passwordHash !== '' && !passwords.isImportable(passwordHash))
    throw errors.validation_failed({
      message: 'password_hash must be one of bcrypt, argon2i, argon2id (v=19) or fbscrypt, within limits',
    });
}

/** The hash that a user is to have: of the password, or the one given; undefined for none. */
export async function hashOf(
  { password = '', passwordHash = '' }: AdminUserInput,
  passwords: Services['passwords'],
): Promise<string | undefined> {
  if (password !== '') return passwords.hash(password);
  return passwordHash === '' ? undefined : passwordHash;
}

/** Names a user in the audit log, as what somebody else did something to. */
export function subjectOf({ id, email, phone }: { id: string; email: string; phone: string }): JsonObject {
  return { user_id: id, user_email: email, user_phone: phone };
}
