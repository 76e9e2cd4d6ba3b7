import type { Millis } from '@tollgate/kit/time';
import { errors, RetryLaterError } from '../errors.ts';
import { pkcePrefix } from '../flows/pkce.ts';
import type { FlowMethod } from '../flows/store.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { networkKey } from '../limits/network-key.ts';
import { checkGatewayCode, isGatewayCode } from '../messages/phone-codes.ts';
import { oneTimeTokenHashes } from '../one-time-tokens/hash.ts';
import type { FoundOneTimeToken } from '../one-time-tokens/store.ts';
import { recordFailedSignIn, recordFailedSignInOf } from '../users/failed-sign-in.ts';
import type { OneTimeTokenType } from '../users/token-columns.ts';
import { type Contact, getAddress, isBanned, readEmail, readPhone, type User } from '../users/user.ts';
import type { VerificationContext } from './context.ts';

interface Verification {
  readonly contact: Contact['kind'];
  readonly tokens: readonly OneTimeTokenType[];
  /** Method of the PKCE flow that the verification completes. */
  readonly flowMethod: (token: OneTimeTokenType) => FlowMethod;
}

const signUp = (): FlowMethod => 'email/signup';

/** Verifications by `type` of `/verify`. `sms` signs in, or confirms a phone for the first time. */
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

type VerificationType = keyof typeof verifications;

function isVerificationType(text: string): text is VerificationType {
  return Object.hasOwn(verifications, text);
}

/** A code with the contact that it was sent to, or the token hash of a link. */
export interface PresentedToken {
  readonly type?: string | undefined;
  readonly token?: string | undefined;
  readonly tokenHash?: string | undefined;
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  /** Not allowed with a token hash. */
  readonly redirectTo?: string | undefined;
}

/** A valid token, not spent yet. */
export interface FoundToken {
  readonly type: VerificationType;
  readonly token: FoundOneTimeToken;
  readonly user: User;
}

/**
 * Finds a presented token. All reasons for which a token is invalid have the same error, which
 * discloses nothing to an attacker who guesses.
 */
export async function findToken(
  context: VerificationContext,
  presented: PresentedToken,
  metadata: RequestMetadata,
): Promise<FoundToken> {
  const read = readPresented(presented);
  const found =
    read.kind === 'link'
      ? await findLinkToken(context, read, metadata)
      : await guessCode(context, read, metadata);
  if (found === undefined)
    throw errors.otp_expired(read.kind === 'link' ? { message: 'Email link is invalid or has expired' } : {});
  if (isBanned(found.user, metadata.nowMs)) {
    recordFailedSignIn(context, found.user, { method, reason: 'user_banned' }, metadata);
    throw errors.user_banned();
  }
  return { type: read.type, ...found };
}

/** Value of the claim `amr` of a sign-in with a code or link. */
const method = 'otp';

async function guessCode(
  context: VerificationContext,
  presented: PresentedCode,
  metadata: RequestMetadata,
): Promise<TokenAndUser | undefined> {
  const { contact } = presented;
  const guess = { kind: 'code', contact: getAddress(contact) } as const;
  const found = await context.limiter.guess(guess, metadata, () =>
    findCodeToken(context, presented, metadata.nowMs),
  );
  const findUser = () => context.store.users.findByContact(contact, context.settings.jwtAud);
  if (found === undefined)
    recordFailedSignInOf(context, findUser, { method, reason: 'wrong_code' }, metadata);
  return found;
}

interface PresentedLink {
  readonly kind: 'link';
  readonly type: VerificationType;
  readonly tokenHash: string;
}

interface PresentedCode {
  readonly kind: 'code';
  readonly type: VerificationType;
  readonly contact: Contact;
  readonly code: string;
}

function readPresented({
  type = '',
  token: code = '',
  tokenHash = '',
  email = '',
  phone = '',
  redirectTo = '',
}: PresentedToken): PresentedLink | PresentedCode {
  if (type === '') throw invalid('Verify requires a verification type');
  if ((code === '') === (tokenHash === '')) throw invalid('Verify requires either a token or a token hash');
  if (tokenHash !== '') {
    if (email !== '' || phone !== '' || redirectTo !== '')
      throw invalid('Only the token_hash and type should be provided');
    if (!isVerificationType(type) || verifications[type].contact === 'phone')
      throw invalid('Invalid email verification type');
    return { kind: 'link', type, tokenHash };
  }
  if ((email === '') === (phone === ''))
    throw invalid('Only an email address or phone number should be provided on verify');
  const contact: Contact =
    email === '' ? { kind: 'phone', phone: readPhone(phone) } : { kind: 'email', email: readEmail(email) };
  if (!isVerificationType(type)) throw invalid('Unsupported verification type');
  // A code that was sent to a phone does not verify an email, and vice versa.
  if (verifications[type].contact !== contact.kind) throw errors.otp_expired();
  return { kind: 'code', type, contact, code };
}

function invalid(message: string) {
  return errors.validation_failed({ message });
}

type TokenAndUser = Omit<FoundToken, 'type'>;

async function findLinkToken(
  context: VerificationContext,
  { type, tokenHash }: PresentedLink,
  metadata: RequestMetadata,
): Promise<TokenAndUser | undefined> {
  const found = await context.store.oneTimeTokens.find([tokenHash], verifications[type].tokens);
  const valid = found && isValid(found, context.settings.mailerOtpExpMs, metadata.nowMs) ? found : undefined;
  await limitGuessableLinks(context, valid?.token, metadata);
  if (found !== undefined && valid === undefined)
    recordFailedSignIn(context, found.user, { method, reason: 'otp_expired' }, metadata);
  return valid;
}

async function findCodeToken(
  context: VerificationContext,
  { type, contact, code }: PresentedCode,
  nowMs: number,
): Promise<TokenAndUser | undefined> {
  const { store, settings } = context;
  const types = verifications[type].tokens;
  if (contact.kind === 'phone') {
    const found = await findPhoneToken(context, { phone: contact.phone, code, types }, nowMs);
    return found && isValid(found, settings.smsOtpExpMs, nowMs) ? found : undefined;
  }
  const hashes = oneTimeTokenHashes(contact.email, code, settings);
  const prefixed = hashes.map((hash) => `${pkcePrefix}${hash}`);
  const found = await store.oneTimeTokens.find([...hashes, ...prefixed], types);
  return found && isValid(found, settings.mailerOtpExpMs, nowMs) ? found : undefined;
}

/**
 * Finds the token of a code that was sent to a phone: by hash, or by asking a gateway that makes
 * the codes itself.
 */
export async function findPhoneToken(
  context: VerificationContext,
  {
    phone,
    code,
    types,
  }: {
    /** Digits. */
    readonly phone: string;
    readonly code: string;
    readonly types: readonly OneTimeTokenType[];
  },
  nowMs: number,
): Promise<TokenAndUser | undefined> {
  const { store, settings } = context;
  if (!isGatewayCode(context, phone, nowMs))
    return store.oneTimeTokens.find(oneTimeTokenHashes(phone, code, settings), types);
  const sent = await store.oneTimeTokens.findSentTo(phone, types, new Date(nowMs - settings.smsOtpExpMs));
  // The code is checked without a user, too: the response time must not disclose whether there is
  // one.
  return (await checkGatewayCode(context, { to: phone, code })) ? sent : undefined;
}

function isValid({ token, user }: TokenAndUser, lifetimeMs: Millis, nowMs: number): boolean {
  return (
    token.at.getTime() + lifetimeMs > nowMs && currentContacts[token.type](user).includes(token.relatesTo)
  );
}

const ownContacts = ({ email, phone }: User): readonly string[] => [email, phone];

/** A token is valid as long as the contact that it was sent to is the user's. */
const currentContacts: Readonly<Record<OneTimeTokenType, (user: User) => readonly string[]>> = {
  confirmation_token: ownContacts,
  recovery_token: ownContacts,
  reauthentication_token: ownContacts,
  // Without a pending change there is nothing to confirm.
  email_change_token_current: ({ email, newEmail }) => (newEmail === '' ? [] : [email]),
  email_change_token_new: ({ newEmail }) => [newEmail],
  phone_change_token: ({ newPhone }) => [newPhone],
};

/**
 * Counts invalid links and those in the form of GoTrue by the network of the client, and refuses
 * the latter beyond a limit: without a secret in the hash, an attacker can compute the links of all
 * codes of a known contact. Links of Tollgate cannot be guessed and are never refused.
 *
 * @throws AppError `over_request_rate_limit`
 */
async function limitGuessableLinks(
  { limiter }: VerificationContext,
  token: FoundOneTimeToken | undefined,
  { clientNetwork, nowMs }: RequestMetadata,
): Promise<void> {
  if (token !== undefined && !token.isGuessable) return;
  const result = await limiter.take('guessable_link', networkKey(clientNetwork), nowMs);
  if (token !== undefined && !result.allowed)
    throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(result.retryAfterMs / 1000));
}
