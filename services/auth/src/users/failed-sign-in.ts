import { type AuditEntry, auditEntry } from '../audit/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { UsersContext } from './save-user.ts';
import type { User } from './user.ts';

type AuditContext = UsersContext;

/** Traits of the audit entry. */
interface FailedSignIn {
  /** A value of the claim `amr`, `pkce` or `token_refresh`. */
  readonly method: string;
  /** Code of an error, or a closer reason that the response does not have. */
  readonly reason: string;
  readonly factor_id?: string;
  readonly provider?: string;
}

const work = 'audit entry of a failed sign-in';

/**
 * Records a failed sign-in of a known user in the audit log. The limits of requests and of wrong
 * guesses bound the entries; names of accounts that do not exist are not limited, and are not
 * recorded. Runs after the response, whose time must not disclose that the user exists.
 */
export function recordFailedSignIn(
  { store, background }: AuditContext,
  user: User,
  failure: FailedSignIn,
  metadata: RequestMetadata,
): void {
  const entry = toEntry(user, failure, metadata);
  background.run(work, () => store.audit.append(entry));
}

/** Records the failure of a request that names an account which was not looked up. */
export function recordFailedSignInOf(
  { store, background }: AuditContext,
  findUser: () => Promise<User | undefined>,
  failure: FailedSignIn,
  metadata: RequestMetadata,
): void {
  background.run(work, async () => {
    const user = await findUser();
    if (user !== undefined) await store.audit.append(toEntry(user, failure, metadata));
  });
}

function toEntry(user: User, failure: FailedSignIn, metadata: RequestMetadata): AuditEntry {
  const actor = { ...user, kind: 'unauthenticated' } as const;
  return auditEntry(actor, 'login_failed', { metadata, traits: { ...failure } });
}
