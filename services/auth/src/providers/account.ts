import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '@tollgate/kit/json';
import type { AuditAction } from '../audit/actions.ts';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { checkNewUser, reportNewUser } from '../hooks/hooks.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Profile } from '../identity-providers/provider.ts';
import { notify } from '../messages/send.ts';
import { signOut } from '../sessions/sessions.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { metadataSizeProblem, withLocale } from '../users/metadata.ts';
import type { NewIdentity, NewUser } from '../users/new-user.ts';
import { isBanned, normalizeEmail, type User, type UserChanges } from '../users/user.ts';
import type { ProvidersContext } from './connections.ts';

/** A profile with the email that counts. */
export interface ProviderIdentity {
  readonly provider: string;
  readonly id: string;
  /** A lower-case address; empty for none. */
  readonly email: string;
  /** Whether the provider has verified the email. */
  readonly isVerified: boolean;
  readonly verifiedEmails: readonly string[];
  readonly data: JsonObject;
}

/** The primary email counts, or a verified one, or the first. */
export function toIdentity(provider: string, profile: Profile): ProviderIdentity {
  const emails = profile.emails.flatMap(({ email, verified, primary }) => {
    const normalized = normalizeEmail(email);
    return normalized === undefined ? [] : [{ email: normalized, verified, primary }];
  });
  const chosen =
    emails.find(({ primary }) => primary) ?? emails.find(({ verified }) => verified) ?? emails[0];
  const isVerified = chosen?.verified ?? false;
  return {
    provider,
    id: profile.id,
    email: chosen?.email ?? '',
    isVerified,
    verifiedEmails: emails.filter(({ verified }) => verified).map(({ email }) => email),
    data: { ...profile.data, ...(chosen && { email: chosen.email }), email_verified: isVerified },
  };
}

/** The user of an identity, and whether they must confirm their email before they may sign in. */
export interface IdentityOwner {
  readonly user: User;
  readonly mustConfirm: boolean;
}

/** Whose email may be missing or unconfirmed. */
interface SignInOptions {
  readonly emailOptional: boolean;
}

/**
 * Finds the user of an identity, links it to a user with the same verified email, or creates a
 * user. Concurrent calls may fail with a unique violation, after which another call succeeds.
 *
 * @throws AppError `user_banned`, `signup_disabled`, `provider_email_needs_verification`,
 * `unexpected_failure` if several users have the emails
 */
export async function findOrCreateOwner(
  context: ProvidersContext,
  identity: ProviderIdentity,
  { emailOptional }: SignInOptions,
  metadata: RequestMetadata,
): Promise<IdentityOwner> {
  for (let attempt = 0; attempt < 2; attempt++) {
    const user = await findOrCreate(context, identity, { emailOptional }, metadata);
    if (user !== undefined) return { user, mustConfirm: needsConfirmation(context, user, { emailOptional }) };
  }
  // The email is taken, and not verified: a verified one would have been linked.
  throw needsVerification(identity.provider);
}

/** Undefined if a concurrent call, or another user with the unverified email, is in the way. */
async function findOrCreate(
  context: ProvidersContext,
  identity: ProviderIdentity,
  options: SignInOptions,
  metadata: RequestMetadata,
): Promise<User | undefined> {
  const { store, settings } = context;
  const candidates = await store.providers.findCandidates({ ...identity, aud: settings.jwtAud });
  const [found, ...others] = candidates;
  if (found === undefined) return createUser(context, identity, options, metadata);
  if (isBanned(found.user, metadata.nowMs)) throw refuseBanned(context, found.user, identity, metadata);
  if (found.hasIdentity) return recordSignIn(context, found.user, identity, metadata);
  if (others.length > 0) refuseAmbiguous();
  return linkByEmail(context, found.user, identity, metadata);
}

/** Records the failed sign-in, and returns the error. */
function refuseBanned(
  context: ProvidersContext,
  user: User,
  { provider }: ProviderIdentity,
  metadata: RequestMetadata,
) {
  const error = errors.user_banned();
  recordFailedSignIn(context, user, { method: 'oauth', reason: error.code, provider }, metadata);
  return error;
}

function refuseAmbiguous(): never {
  throw errors.unexpected_failure({
    message: 'Multiple accounts with the same email address in the same linking domain detected: default',
  });
}

function needsConfirmation(
  { settings }: ProvidersContext,
  user: User,
  { emailOptional }: SignInOptions,
): boolean {
  if (user.confirmedAt !== undefined || settings.mailerAllowUnverifiedEmailSignIns) return false;
  return !(emailOptional && user.email === '');
}

async function createUser(
  context: ProvidersContext,
  identity: ProviderIdentity,
  { emailOptional }: SignInOptions,
  metadata: RequestMetadata,
): Promise<User | undefined> {
  const { store, limiter, random, settings } = context;
  if (identity.email === '' && !emailOptional)
    throw errors.unexpected_failure({ message: 'Error getting user email from external provider' });
  if (settings.disableSignup) throw errors.signup_disabled();
  const isConfirmed = identity.email !== '' && (identity.isVerified || settings.mailerAutoconfirm);
  const at = new Date(metadata.nowMs);
  const { provider } = identity;
  const newUser: NewUser = {
    id: random.uuid(),
    aud: settings.jwtAud,
    role: settings.jwtDefaultGroupName,
    email: identity.email,
    phone: '',
    passwordHash: undefined,
    emailConfirmedAt: isConfirmed ? at : undefined,
    phoneConfirmedAt: undefined,
    appMetadata: { provider, providers: [provider] },
    userMetadata: withLocale(fittingMetadata(identity.data, {}), settings, metadata),
    isAnonymous: false,
    createdAt: at,
    identities: [newIdentity(identity)],
  };
  const action = isConfirmed || emailOptional ? 'user_signedup' : 'user_confirmation_requested';
  const audit = auditEntry(newUser, action, { metadata, traits: { provider } });
  const refusal = limiter.takeSignUp(metadata.client);
  if (refusal !== undefined) throw refusal;
  await checkNewUser(context, newUser, metadata);
  // Undefined if the email is taken.
  if (!(await store.users.insert(newUser, audit))) return undefined;
  const user = await store.users.findById(newUser.id);
  if (user === undefined) throw errors.user_not_found();
  reportNewUser(context, user, metadata);
  return user;
}

/** An error that sends the user back to the provider. */
function needsVerification(provider: string) {
  return errors.provider_email_needs_verification({
    message: `Unverified email with ${provider}. Verify the email with ${provider} in order to sign in`,
  });
}

async function recordSignIn(
  context: ProvidersContext,
  user: User,
  identity: ProviderIdentity,
  metadata: RequestMetadata,
): Promise<User> {
  // A verified email of the provider confirms the same email of the user.
  const confirms = user.confirmedAt === undefined && identity.verifiedEmails.includes(user.email);
  if (confirms) return takeOver(context, user, identity, metadata);
  const { provider, id, data } = identity;
  const known = user.identities.find((other) => other.provider === provider && other.providerId === id);
  if (known === undefined || !contains(known.data, data) || !contains(user.userMetadata, data))
    return update(context, user, { identity, action: 'user_modified' }, metadata);
  await context.store.providers.touchIdentity(identity, new Date(metadata.nowMs));
  return user;
}

/** Whether `data` would not change anything. */
function contains(stored: JsonObject, data: JsonObject): boolean {
  return Object.entries(data).every(([key, value]) => isDeepStrictEqual(stored[key], value));
}

async function linkByEmail(
  context: ProvidersContext,
  user: User,
  identity: ProviderIdentity,
  metadata: RequestMetadata,
): Promise<User> {
  if (user.emailConfirmedAt === undefined) return takeOver(context, user, identity, metadata);
  const linked = await update(context, user, { identity, action: 'identity_linked' }, metadata);
  notifyLinked(context, linked, identity, metadata);
  return linked;
}

/**
 * Confirms a user by the provider's verified email, and removes whatever an attacker may have
 * prepared: password, metadata, other identities and sessions. The attacker signed up with the
 * email of a victim and waited for them to sign in.
 */
async function takeOver(
  context: ProvidersContext,
  user: User,
  identity: ProviderIdentity,
  metadata: RequestMetadata,
  action: AuditAction = 'user_signedup',
): Promise<User> {
  const removed = Object.fromEntries(Object.keys(user.userMetadata).map((key) => [key, null]));
  const changes = {
    passwordHash: null,
    emailConfirmedAt: new Date(metadata.nowMs),
    userMetadata: removed,
  };
  return context.store.transaction(async (store) => {
    const within = { ...context, store };
    await store.providers.keepOnlyIdentity(user.id, identity);
    await signOut(within, { user, sessionId: undefined, scope: 'global' }, metadata);
    return update(within, { ...user, identities: [] }, { identity, action, changes }, metadata);
  });
}

/** Stores an identity with its latest data, and changes of its user. */
async function update(
  { store }: ProvidersContext,
  user: User,
  {
    identity,
    action,
    changes = {},
  }: {
    readonly identity: ProviderIdentity;
    readonly action: AuditAction;
    readonly changes?: UserChanges;
  },
  metadata: RequestMetadata,
): Promise<User> {
  const { provider } = identity;
  const before = user.identities.map((known) => known.provider);
  const known = [...new Set([...before, provider])];
  const updated = await store.users.update(
    user.id,
    {
      ...changes,
      appMetadata: { provider: known[0] ?? provider, providers: known },
      userMetadata: { ...changes.userMetadata, ...fittingMetadata(identity.data, user.userMetadata) },
    },
    {
      at: new Date(metadata.nowMs),
      audit: auditEntry(user, action, { metadata, traits: { provider, provider_id: identity.id } }),
      identities: [newIdentity(identity)],
    },
  );
  if (!updated.ok) throw updated.reason === 'email_exists' ? errors.email_exists() : errors.user_not_found();
  return updated.user;
}

/**
 * Accepts an invitation: adds the identity to the invited user, whose email the provider must have
 * verified.
 *
 * @throws AppError `invite_not_found`, `validation_failed`
 */
export async function acceptInvite(
  context: ProvidersContext,
  identity: ProviderIdentity,
  inviteToken: string,
  metadata: RequestMetadata,
): Promise<User> {
  const found = await findInvite(context, inviteToken, metadata);
  if (found === undefined) throw errors.invite_not_found();
  const { user, token } = found;
  if (!identity.verifiedEmails.includes(user.email))
    throw errors.validation_failed({ message: 'Invited email does not match emails from external provider' });
  if (isBanned(user, metadata.nowMs)) throw refuseBanned(context, user, identity, metadata);
  return context.store.transaction(async (store) => {
    const within = { ...context, store };
    if (!(await store.oneTimeTokens.spend(token))) throw errors.invite_not_found();
    const [owner] = await store.providers.findCandidates({ ...identity, verifiedEmails: [], aud: user.aud });
    if (owner !== undefined && owner.user.id !== user.id) throw errors.identity_already_exists();
    return takeOver(within, user, identity, metadata, 'invite_accepted');
  });
}

/** The user of an invitation that has not expired. */
export async function findInvite(
  { store, settings }: ProvidersContext,
  inviteToken: string,
  { nowMs }: RequestMetadata,
) {
  const found = await store.oneTimeTokens.find([inviteToken], ['confirmation_token']);
  const isValid = found !== undefined && found.token.at.getTime() + settings.mailerOtpExpMs > nowMs;
  return isValid && found.token.relatesTo === found.user.email ? found : undefined;
}

/**
 * Links an identity to the user who asked for it. An anonymous user becomes permanent.
 *
 * @throws AppError `identity_already_exists`, `email_exists`, `user_not_found`, `user_banned`
 */
export async function linkToUser(
  context: ProvidersContext,
  identity: ProviderIdentity,
  userId: string,
  metadata: RequestMetadata,
): Promise<IdentityOwner> {
  const { store, settings } = context;
  const [owner] = await store.providers.findCandidates({
    ...identity,
    verifiedEmails: [],
    aud: settings.jwtAud,
  });
  if (owner?.hasIdentity)
    throw errors.identity_already_exists(
      owner.user.id === userId ? {} : { message: 'Identity is already linked to another user' },
    );
  const user = await store.users.findById(userId);
  if (user === undefined) throw errors.user_not_found();
  if (isBanned(user, metadata.nowMs)) throw errors.user_banned();
  const takesEmail = user.email === '' && identity.email !== '';
  const isConfirmed = identity.isVerified || settings.mailerAutoconfirm;
  const linked = await update(
    context,
    user,
    {
      identity,
      action: 'identity_linked',
      changes: {
        ...(takesEmail && {
          email: identity.email,
          ...(isConfirmed && { emailConfirmedAt: new Date(metadata.nowMs) }),
        }),
        ...(user.isAnonymous && (!takesEmail || isConfirmed) && { isAnonymous: false }),
      },
    },
    metadata,
  );
  notifyLinked(context, linked, identity, metadata);
  return { user: linked, mustConfirm: takesEmail && !isConfirmed };
}

function notifyLinked(
  context: ProvidersContext,
  user: User,
  { provider }: ProviderIdentity,
  metadata: RequestMetadata,
): void {
  const variables = { Provider: provider };
  notify(context, { user, kind: 'IDENTITY_LINKED_NOTIFICATION', variables }, metadata);
}

function newIdentity({ provider, id, data }: ProviderIdentity): NewIdentity {
  return { provider, providerId: id, data };
}

/** Empty if access tokens would outgrow the headers that carry them. */
function fittingMetadata(data: JsonObject, before: JsonObject): JsonObject {
  return metadataSizeProblem('user_metadata', { before, changes: data }) === undefined ? data : {};
}
