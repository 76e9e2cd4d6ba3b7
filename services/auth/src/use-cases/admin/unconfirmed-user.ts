import { type AuditActor, auditEntry } from '../../domain/audit-entry.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { checkMetadata } from '../users/check-metadata.ts';
import { newContactUser } from '../users/new-user.ts';
import { subjectOf } from './admin-user-input.ts';

/** Somebody who has not confirmed their email yet. */
export interface Unconfirmed {
  readonly email: string;
  readonly aud: string;
  /** What is said of the user. */
  readonly data: JsonObject;
  readonly passwordHash?: string | undefined;
  /** Whether they are invited now; else they sign up. */
  readonly invited: boolean;
}

/**
 * The user of an email that nobody has confirmed: a new one, or the one that is there, with what is said of them now.
 *
 * @throws AppError `email_exists` when the user has confirmed it, `validation_failed` for too much metadata.
 */
export type PrepareUnconfirmed = (
  wanted: Unconfirmed,
  known: User | undefined,
  by: { readonly actor: AuditActor; readonly facts: RequestFacts },
) => Promise<User>;

/** What that takes. */
export type UnconfirmedDeps = DepsWith<'store' | 'random', 'jwtDefaultGroupName'>;

/** Creates {@link PrepareUnconfirmed}. */
export function createPrepareUnconfirmed({ store, random, settings }: UnconfirmedDeps): PrepareUnconfirmed {
  async function create(
    { email, aud, data, passwordHash, invited }: Unconfirmed,
    { actor, facts }: Parameters<PrepareUnconfirmed>[2],
  ): Promise<User> {
    const at = new Date(facts.nowMs);
    const user = newContactUser({
      id: random.uuid(),
      aud,
      role: settings.jwtDefaultGroupName,
      contact: { kind: 'email', email },
      passwordHash,
      confirmed: false,
      userMetadata: data,
      at,
    });
    const audit = auditEntry(actor, 'user_signedup', {
      facts,
      traits: { ...subjectOf(user), provider: 'email' },
    });
    // Metadata as it was sent: unlike at a sign-up, nothing of the identity is added.
    const stored = { ...user, userMetadata: data, ...(invited && { invitedAt: at }) };
    if (!(await store.users.insert(stored, audit))) throw errors.email_exists();
    const created = await store.users.findById(user.id);
    if (created === undefined) throw errors.user_not_found();
    return created;
  }

  async function renew(
    user: User,
    { data, passwordHash, invited }: Unconfirmed,
    { actor, facts }: Parameters<PrepareUnconfirmed>[2],
  ): Promise<User> {
    const at = new Date(facts.nowMs);
    const audit = auditEntry(actor, 'user_modified', { facts, traits: subjectOf(user) });
    const updated = await store.users.update(
      user.id,
      {
        userMetadata: data,
        ...(invited && { invitedAt: at }),
        // Whoever signed up with this address before has not shown that it is theirs.
        ...(passwordHash !== undefined && { passwordHash }),
      },
      { at, audit },
    );
    if (!updated.ok) throw errors.user_not_found();
    return updated.user;
  }

  return async (wanted, known, by) => {
    checkMetadata({ userMetadata: wanted.data }, known);
    if (known === undefined) return create(wanted, by);
    if (known.emailConfirmedAt !== undefined) throw errors.email_exists();
    return renew(known, wanted, by);
  };
}
