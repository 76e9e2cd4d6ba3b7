import type { Millis } from '@tollgate/kit/duration';
import { pkcePrefix } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { isBanned, type User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { FoundOneTimeToken, OneTimeTokenType } from '../../ports/one-time-token-store.ts';
import type { DepsWith } from '../../services.ts';
import { oneTimeTokenHashes } from '../../tokens/hash-one-time-token.ts';
import { type Contact, readEmail, readPhone } from '../contact/read-contact.ts';
import { GuessLimiter, type GuessLimiterDeps } from '../guessing/guess-limiter.ts';
import { createFindPhoneToken, type FindPhoneTokenDeps } from '../phone/find-phone-token.ts';
import { limitGuessableLinks } from './limit-guessable-links.ts';
import { isVerificationType, type VerificationType, verifications } from './verification.ts';

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
export type FindToken = (presented: Presented, facts: RequestFacts) => Promise<FoundToken>;

/** What that takes. */
export type FindTokenDeps = FindPhoneTokenDeps &
  GuessLimiterDeps &
  DepsWith<'store', 'mailerOtpExpMs' | 'smsOtpExpMs'>;

/** Creates {@link FindToken}: one statement for a link; for a code another one for the limits of guesses. */
export function createFindToken(deps: FindTokenDeps): FindToken {
  const { store, settings } = deps;
  const findPhoneToken = createFindPhoneToken(deps);
  const limiter = new GuessLimiter(deps);

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

  return async (presented, facts) => {
    const read = readPresented(presented);
    const { contact } = read;
    const attempt = (): Promise<FoundToken | undefined> => findGood(read, facts.nowMs);
    const found =
      contact === undefined
        ? await attempt()
        : await limiter.guess({ kind: 'code', contact }, facts, attempt);
    if (contact === undefined) await limitGuessableLinks(deps, found?.token, facts);
    if (found === undefined)
      throw errors.otp_expired(
        contact === undefined ? { message: 'Email link is invalid or has expired' } : {},
      );
    if (isBanned(found.user, facts.nowMs)) throw errors.user_banned();
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
