import type { Millis } from '@tollgate/kit/time';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { getTestCode } from '../messages/phone-codes.ts';
import { type FlowMethod, pkcePrefix } from '../sign-in/pkce.ts';
import { type Contact, readEmail, readPhone } from '../users/contact.ts';
import { isBanned, type User } from '../users/user.ts';
import { oneTimeTokenHashes } from './one-time-tokens.ts';
import type { FoundOneTimeToken, OneTimeTokenType } from './store.ts';
import { limitGuessableLinks } from './verify.ts';

/** What a type of verification takes, and what it ends with. */
export interface Verification {
  /** Where the code went. */
  readonly contact: 'email' | 'phone';
  readonly tokens: readonly OneTimeTokenType[];
  /** What a PKCE flow that it completes began with, by the token that was found. */
  readonly flowMethod: (token: OneTimeTokenType) => FlowMethod;
}

const signUp = (): FlowMethod => 'email/signup';

/** Values of `type` at `/verify`. A sign-in by text message and the first confirmation of a phone are the same. */
export const verifications = {
  signup: { contact: 'email', tokens: ['confirmation_token'], flowMethod: signUp },
  invite: { contact: 'email', tokens: ['confirmation_token'], flowMethod: () => 'invite' },
  recovery: { contact: 'email', tokens: ['recovery_token'], flowMethod: () => 'recovery' },
  magiclink: { contact: 'email', tokens: ['recovery_token'], flowMethod: () => 'magiclink' },
  email: {
    contact: 'email',
    tokens: ['confirmation_token', 'recovery_token'],
    flowMethod: (token) => (token === 'confirmation_token' ? 'email/signup' : 'magiclink'),
  },
  email_change: {
    contact: 'email',
    tokens: ['email_change_token_current', 'email_change_token_new'],
    flowMethod: () => 'email_change',
  },
  sms: { contact: 'phone', tokens: ['confirmation_token', 'recovery_token'], flowMethod: signUp },
  phone_change: { contact: 'phone', tokens: ['phone_change_token'], flowMethod: signUp },
} as const satisfies Record<string, Verification>;

/** One of the keys of {@link verifications}. */
export type VerificationType = keyof typeof verifications;

/** Is it one of them? */
function isVerificationType(text: string): text is VerificationType {
  return Object.hasOwn(verifications, text);
}

/** A code that somebody shows, and the phone that it is said to have gone to. */
interface ShownPhoneCode {
  /** As it is kept: digits. */
  readonly phone: string;
  readonly code: string;
  readonly types: readonly OneTimeTokenType[];
}

/** Finds the token of a code that went to a phone, and its user; undefined for a wrong code. */
export type FindPhoneToken = (
  shown: ShownPhoneCode,
  nowMs: number,
) => Promise<{ readonly token: FoundOneTimeToken; readonly user: User } | undefined>;

/** Creates {@link FindPhoneToken}: by the hash of the code, or where the gateway makes codes of its own, by asking it. */
export function createFindPhoneToken({ store, sms, settings }: Context): FindPhoneToken {
  /** Asked for phones that nobody has as well: how long that takes must not tell which ones somebody has. */
  async function isGood(phone: string, code: string): Promise<boolean> {
    try {
      return (await sms.check?.({ to: phone, code })) ?? false;
    } catch (cause) {
      throw errors.unexpected_failure({ message: 'Unable to check the code with the SMS provider', cause });
    }
  }

  return async ({ phone, code, types }, nowMs) => {
    const isKnownBeforehand = getTestCode(phone, settings, nowMs) !== undefined;
    if (sms.check === undefined || isKnownBeforehand)
      return store.oneTimeTokens.find(oneTimeTokenHashes(phone, code, settings), types);
    const since = new Date(nowMs - settings.smsOtpExpMs);
    const sent = await store.oneTimeTokens.findSentTo(phone, types, since);
    return (await isGood(phone, code)) ? sent : undefined;
  };
}

/** What somebody shows to be who they say they are: a code with the contact it went to, or the hash of a link. */
export interface Presented {
  readonly type?: string | undefined;
  readonly token?: string | undefined;
  readonly tokenHash?: string | undefined;
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  /** Nobody may send one along with a hash, which has all that there is to say. */
  readonly redirectTo?: string | undefined;
}

/** A token that is good, and not spent yet. */
export interface FoundToken {
  readonly type: VerificationType;
  readonly token: FoundOneTimeToken;
  readonly user: User;
}

/** Finds the token that is presented. Every reason why there is none reads the same: who guesses learns nothing. */
export type FindToken = (presented: Presented, metadata: RequestMetadata) => Promise<FoundToken>;

/** Creates {@link FindToken}: one statement for a link; for a code another one for the limits of guesses. */
export function createFindToken(deps: Context): FindToken {
  const { store, settings } = deps;
  const findPhoneToken = createFindPhoneToken(deps);

  function find({ type, contact, code, tokenHash }: ReadPresented, nowMs: number) {
    const types = verifications[type].tokens;
    if (contact === undefined) return store.oneTimeTokens.find([tokenHash], types);
    if (verifications[type].contact === 'phone')
      return findPhoneToken({ phone: contact, code, types }, nowMs);
    const hashes = oneTimeTokenHashes(contact, code, settings);
    return store.oneTimeTokens.find([...hashes, ...hashes.map((hash) => `${pkcePrefix}${hash}`)], types);
  }

  function lifeMs(type: VerificationType): Millis {
    return verifications[type].contact === 'phone' ? settings.smsOtpExpMs : settings.mailerOtpExpMs;
  }

  /** The token that is presented; undefined when there is none, or it is not good any more. */
  async function findGood(read: ReadPresented, nowMs: number): Promise<FoundToken | undefined> {
    const found = await find(read, nowMs);
    if (found === undefined) return undefined;
    const { token, user } = found;
    const isGood = token.at.getTime() + lifeMs(read.type) > nowMs && isCurrentContact(user, token);
    return isGood ? { type: read.type, token, user } : undefined;
  }

  return async (presented, metadata) => {
    const read = readPresented(presented);
    const { contact } = read;
    const attempt = (): Promise<FoundToken | undefined> => findGood(read, metadata.nowMs);
    const found =
      contact === undefined
        ? await attempt()
        : await deps.guessLimiter.guess({ kind: 'code', contact }, metadata, attempt);
    if (contact === undefined) await limitGuessableLinks(deps, found?.token, metadata);
    if (found === undefined)
      throw errors.otp_expired(
        contact === undefined ? { message: 'Email link is invalid or has expired' } : {},
      );
    if (isBanned(found.user, metadata.nowMs)) throw errors.user_banned();
    return found;
  };
}

interface ReadPresented {
  readonly type: VerificationType;
  /** Where the code went; absent for a link. */
  readonly contact: string | undefined;
  /** Empty for a link. */
  readonly code: string;
  /** Empty for a code. */
  readonly tokenHash: string;
}

function readPresented({ type = '', token = '', tokenHash = '', ...rest }: Presented): ReadPresented {
  if (type === '') throw invalid('Verify requires a verification type');
  if ((token === '') === (tokenHash === '')) throw invalid('Verify requires either a token or a token hash');
  const { email = '', phone = '', redirectTo = '' } = rest;
  if (tokenHash !== '') {
    if (email !== '' || phone !== '' || redirectTo !== '')
      throw invalid('Only the token_hash and type should be provided');
    if (!isVerificationType(type) || verifications[type].contact === 'phone')
      throw invalid('Invalid email verification type');
    return { type, contact: undefined, code: '', tokenHash };
  }
  if ((email === '') === (phone === ''))
    throw invalid('Only an email address or phone number should be provided on verify');
  const contact: Contact =
    email === '' ? { kind: 'phone', phone: readPhone(phone) } : { kind: 'email', email: readEmail(email) };
  if (!isVerificationType(type)) throw invalid('Unsupported verification type');
  // A code that went to a phone says nothing of an email.
  if (verifications[type].contact !== contact.kind) throw errors.otp_expired();
  const value = contact.kind === 'email' ? contact.email : contact.phone;
  return { type, contact: value, code: token, tokenHash: '' };
}

function invalid(message: string) {
  return errors.validation_failed({ message });
}

/** A token is good for the contact that it was sent to, for as long as that is the user's. */
function isCurrentContact(user: User, { type, relatesTo }: FoundOneTimeToken): boolean {
  return contactsOf[type](user).includes(relatesTo);
}

const own = ({ email, phone }: User): readonly string[] => [email, phone];

const contactsOf: Readonly<Record<OneTimeTokenType, (user: User) => readonly string[]>> = {
  confirmation_token: own,
  recovery_token: own,
  reauthentication_token: own,
  // Nothing is left to confirm when the change has been made or given up.
  email_change_token_current: ({ email, newEmail }) => (newEmail === '' ? [] : [email]),
  email_change_token_new: ({ newEmail }) => [newEmail],
  phone_change_token: ({ newPhone }) => [newPhone],
};
