import { isAppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import { parseInstant } from '@tollgate/kit/time';
import type { Settings } from '../../config/settings.ts';
import { errors } from '../../errors.ts';
import { findJsonProblem, isStorable } from '../../http/body-parsers.ts';
import type { Randomness } from '../../keys/secrets.ts';
import { checkMetadata } from '../../users/metadata.ts';
import type { NewIdentity, NewUser } from '../../users/new-user.ts';
import {
  type AdminUserInput,
  checkSecret,
  readBan,
  readName,
  readOptionalEmail,
  readOptionalPhone,
} from '../input.ts';
import { createMetadata, readId } from '../users.ts';
import type { Line } from './lines.ts';

/** A user to be stored as given. */
export interface ImportedUser extends NewUser {
  /** Whether the line names the id. */
  readonly hasId: boolean;
  readonly lastSignInAt: Date | undefined;
}

/** Why a line is not imported. */
export interface LineProblem {
  readonly line: number;
  /** Responses of the API have the same codes. */
  readonly code: string;
  readonly message: string;
}

type Kind = 'text' | 'flag' | 'time' | 'object' | 'list';

/** Members of a line: those of `POST /admin/users`, and of users in responses. */
const members = {
  id: 'text',
  aud: 'text',
  role: 'text',
  email: 'text',
  phone: 'text',
  password_hash: 'text',
  email_confirm: 'flag',
  email_confirmed_at: 'time',
  phone_confirm: 'flag',
  phone_confirmed_at: 'time',
  user_metadata: 'object',
  app_metadata: 'object',
  identities: 'list',
  ban_duration: 'text',
  banned_until: 'time',
  created_at: 'time',
  last_sign_in_at: 'time',
} as const satisfies Readonly<Record<string, Kind>>;

/** Members of users in responses that are derived, or do not outlive an import. */
const ignoredMembers: ReadonlySet<string> = new Set([
  ...['updated_at', 'confirmed_at', 'invited_at', 'confirmation_sent_at', 'recovery_sent_at', 'is_anonymous'],
  ...['new_email', 'email_change_sent_at', 'new_phone', 'phone_change_sent_at', 'reauthentication_sent_at'],
  ...['deleted_at'],
]);

const forms: Readonly<Record<Kind, string>> = {
  text: 'a string',
  flag: 'true or false',
  time: 'a time such as 2026-01-31T12:00:00Z',
  object: 'an object',
  list: 'a list',
};

interface ReadOptions {
  readonly settings: Settings;
  readonly random: Pick<Randomness, 'uuid'>;
  readonly at: Date;
}

/** Reads a line of NDJSON. Secrets are never part of a problem. */
export function readUser(
  { number: line, text }: Line,
  options: ReadOptions,
):
  | { readonly ok: true; readonly user: ImportedUser }
  | { readonly ok: false; readonly problem: LineProblem } {
  try {
    if (text === undefined)
      throw errors.request_entity_too_large({ message: 'the line is longer than 64 KiB' });
    return { ok: true, user: toUser(parseLine(text), options) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { ok: false, problem: { line, code: error.code, message: error.message } };
  }
}

/** @throws AppError `bad_json` */
export function parseLine(text: string): JsonObject {
  const problem = findJsonProblem(text);
  if (problem !== undefined) throw errors.bad_json({ message: `the line is not accepted: ${problem}` });
  let value: unknown;
  try {
    value = JSON.parse(text, (key, member: unknown) => (key === '__proto__' ? undefined : member));
  } catch {
    throw errors.bad_json({ message: 'the line is not JSON' });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw errors.bad_json({ message: 'the line is not a JSON object' });
  if (!isStorable(value)) throw errors.bad_json({ message: 'a string has NUL or an unpaired surrogate' });
  return value as JsonObject; // an object, see above
}

/** The members of a line, checked. `null` is absent. */
function readMembers(given: JsonObject) {
  const read: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === null || ignoredMembers.has(name)) continue;
    if (name === 'password') throw invalid('password is not accepted: give password_hash');
    if (name === 'factors') {
      if (Array.isArray(value) && value.length === 0) continue;
      throw invalid('factors cannot be imported: remove the member, and users enroll again');
    }
    const kind = Object.hasOwn(members, name) ? members[name as keyof typeof members] : undefined;
    if (kind === undefined) throw invalid(`unknown member ${JSON.stringify(name.slice(0, 64))}`);
    const converted = convert(kind, value);
    if (converted === undefined) throw invalid(`${name} must be ${forms[kind]}`);
    read[name] = converted;
  }
  // Parsed boundary: each member has been converted to its kind.
  return read as { readonly [K in keyof typeof members]?: Converted[(typeof members)[K]] };
}

interface Converted {
  readonly text: string;
  readonly flag: boolean;
  readonly time: Date;
  readonly object: JsonObject;
  readonly list: readonly unknown[];
}

function convert(kind: Kind, value: unknown): unknown {
  if (kind === 'list') return Array.isArray(value) ? value : undefined;
  if (kind === 'object') return typeof value === 'object' && !Array.isArray(value) ? value : undefined;
  if (kind === 'flag') return typeof value === 'boolean' ? value : undefined;
  if (typeof value !== 'string') return undefined;
  return kind === 'time' ? parseInstant(value) : value;
}

function toUser(given: JsonObject, { settings, random, at }: ReadOptions): ImportedUser {
  const m = readMembers(given);
  const email = readOptionalEmail(m.email);
  const phone = readOptionalPhone(m.phone);
  const givenId = readId(m.id);
  const id = givenId ?? random.uuid();
  const emailConfirmedAt = m.email_confirmed_at ?? (m.email_confirm === true ? at : undefined);
  const phoneConfirmedAt = m.phone_confirmed_at ?? (m.phone_confirm === true ? at : undefined);
  const input: AdminUserInput = {
    passwordHash: m.password_hash,
    emailConfirm: emailConfirmedAt !== undefined,
    phoneConfirm: phoneConfirmedAt !== undefined,
    userMetadata: m.user_metadata,
    appMetadata: m.app_metadata,
  };
  checkSecret(input);
  checkMetadata(input);
  const external = (m.identities ?? []).flatMap(readIdentity);
  if (email === '' && phone === '' && external.length === 0)
    throw invalid('a user needs an email, a phone or an identity of a provider');
  const { identities, appMetadata, userMetadata } = createMetadata(input, id, { email, phone });
  const all = [...identities, ...external];
  const providers = [...new Set(all.map(({ provider }) => provider))];
  const metadata = { nowMs: at.getTime(), clientAddress: '', userAgent: '', requestId: '' };
  return {
    id,
    hasId: givenId !== undefined,
    aud: readName('aud', m.aud) || settings.jwtAud,
    role: readName('role', m.role) || settings.jwtDefaultGroupName,
    email,
    phone,
    passwordHash: m.password_hash || undefined,
    emailConfirmedAt: email === '' ? undefined : emailConfirmedAt,
    phoneConfirmedAt: phone === '' ? undefined : phoneConfirmedAt,
    appMetadata: { ...appMetadata, provider: providers[0] ?? '', providers, ...m.app_metadata },
    userMetadata,
    isAnonymous: false,
    createdAt: m.created_at ?? at,
    lastSignInAt: m.last_sign_in_at,
    bannedUntil: m.banned_until ?? readBan(m.ban_duration, metadata) ?? undefined,
    identities: all,
  };
}

const maxProviderChars = 100;
const maxProviderIdChars = 1024;

/** An identity of a provider. Those of email and phone follow from the contacts of the user. */
function readIdentity(value: unknown): NewIdentity[] {
  // Parsed boundary: the members are checked below.
  const identity = (typeof value === 'object' && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const { provider, id, provider_id: providerId = id } = identity;
  const data = identity.identity_data ?? {};
  if (typeof provider !== 'string' || provider === '' || provider.length > maxProviderChars)
    throw invalid('an identity needs a provider');
  if (provider === 'email' || provider === 'phone') return [];
  if (typeof providerId !== 'string' || providerId === '' || providerId.length > maxProviderIdChars)
    throw invalid('an identity needs provider_id, the id of the user at the provider');
  if (typeof data !== 'object' || Array.isArray(data)) throw invalid('identity_data must be an object');
  return [{ provider, providerId, data: { sub: providerId, ...(data as JsonObject) } }];
}

function invalid(message: string): Error {
  return errors.validation_failed({ message });
}
