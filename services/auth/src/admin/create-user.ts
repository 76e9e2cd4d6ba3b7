import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { isUuid } from '../http/api.ts';
import { checkPasswordLength } from '../passwords/policy.ts';
import { newContactIdentity } from '../users/contact.ts';
import { checkMetadata } from '../users/metadata.ts';
import { getUser } from '../users/update.ts';
import type { JsonObject, NewUser, User } from '../users/user.ts';
import {
  type AdminRequest,
  type AdminUserInput,
  checkSecret,
  readBan,
  readName,
  readOptionalEmail,
  readOptionalPhone,
  toPasswordHash,
  userAuditEntry,
} from './input.ts';

interface NewUserInput extends AdminUserInput {
  /** Generated when absent. */
  readonly id?: string | undefined;
  readonly aud: string;
}

interface Contacts {
  readonly email: string;
  readonly phone: string;
}

const nilUuid = '00000000-0000-0000-0000-000000000000';

/**
 * Creates a user without sending anything. The order of the checks is GoTrue's, which its clients
 * rely on. The password policy does not apply to administrators.
 */
export async function createUser(
  context: Pick<Context, 'store' | 'settings' | 'random' | 'passwords'>,
  input: NewUserInput,
  request: AdminRequest,
): Promise<User> {
  const { store, random, passwords, settings } = context;
  const at = new Date(request.metadata.nowMs);
  if ((input.email ?? '') === '' && (input.phone ?? '') === '')
    throw errors.validation_failed({ message: 'Cannot create a user without either an email or phone' });
  const email = readOptionalEmail(input.email);
  const phone = readOptionalPhone(input.phone);
  const id = readId(input.id) ?? random.uuid();
  await checkAvailable(context, { id, email, phone });
  checkSecret(input);
  checkPasswordLength(input.password ?? '');
  checkMetadata(input);
  const bannedUntil = readBan(input.banDuration, request.metadata) ?? undefined;
  const user: NewUser = {
    id,
    aud: readName('aud', input.aud),
    role: readName('role', input.role) || settings.jwtDefaultGroupName,
    email,
    phone,
    passwordHash: await toPasswordHash(input, passwords),
    emailConfirmedAt: confirmsEmail(input, { email, phone }) ? at : undefined,
    phoneConfirmedAt: confirmsPhone(input, { email, phone }) ? at : undefined,
    isAnonymous: false,
    createdAt: at,
    bannedUntil,
    ...createMetadata(input, id, { email, phone }),
  };
  if (!(await store.users.insert(user, userAuditEntry(request, 'user_signedup', user)))) {
    await checkAvailable(context, user); // inserted concurrently
    throw errors.conflict();
  }
  return getUser(store, id);
}

async function checkAvailable(
  { store }: Pick<Context, 'store'>,
  user: Pick<NewUser, 'id' | 'email' | 'phone'>,
): Promise<void> {
  const taken = await store.users.findTaken(user);
  if (taken === 'email') throw errors.email_exists();
  if (taken === 'phone') throw errors.phone_exists();
  if (taken === 'id') throw errors.user_already_exists({ message: 'A user with this id already exists' });
}

function readId(id = ''): string | undefined {
  if (id === '') return undefined;
  if (!isUuid(id)) throw errors.validation_failed({ message: 'ID must conform to the uuid v4 format' });
  if (id === nilUuid) throw errors.validation_failed({ message: 'ID cannot be a nil uuid' });
  return id.toLowerCase();
}

function confirmsEmail(input: AdminUserInput, { email }: Contacts): boolean {
  return email !== '' && input.emailConfirm === true;
}

function confirmsPhone(input: AdminUserInput, { phone }: Contacts): boolean {
  return phone !== '' && input.phoneConfirm === true;
}

function createMetadata(
  input: NewUserInput,
  id: string,
  contacts: Contacts,
): Pick<NewUser, 'identities' | 'appMetadata' | 'userMetadata'> {
  const { email, phone } = contacts;
  const isEmailConfirmed = confirmsEmail(input, contacts);
  const isPhoneConfirmed = confirmsPhone(input, contacts);
  const identities = [
    ...(email === ''
      ? []
      : [newContactIdentity(id, { kind: 'email', email }, { verified: isEmailConfirmed })]),
    ...(phone === ''
      ? []
      : [newContactIdentity(id, { kind: 'phone', phone }, { verified: isPhoneConfirmed })]),
  ];
  const providers = identities.map(({ provider }) => provider);
  return {
    identities,
    appMetadata: withoutNulls({ provider: providers[0] ?? '', providers, ...input.appMetadata }),
    userMetadata: {
      ...input.userMetadata,
      ...(isEmailConfirmed && { email_verified: true }),
      ...(isPhoneConfirmed && { phone_verified: true }),
    },
  };
}

/** A `null` in app metadata removes the key, as in an update. */
function withoutNulls(metadata: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null));
}
