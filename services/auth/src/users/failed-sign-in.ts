import { type AuditEntry, auditEntry } from '../audit/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { UsersContext } from './save-user.ts';
import type { User } from './user.ts';

type AuditContext = UsersContext & { readonly limiter: Pick<Limiter, 'take'> };

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
 * Records a failed sign-in of a known user in the audit log, at most as many in an hour as the
 * limit of the account allows: attackers must not fill the disk. Names of accounts that do not
 * exist are not limited, and are not recorded. Runs after the response, whose time must not
 * disclose that the user exists.
 */
export function recordFailedSignIn(
  context: AuditContext,
  user: User,
  failure: FailedSignIn,
  metadata: RequestMetadata,
): void {
  // Made before the response, so that the access log has it, too.
  const entry = toEntry(user, failure, metadata);
  context.background.run(work, () => append(context, user, entry));
}

/** Records the failure of a request that names an account which was not looked up. */
export function recordFailedSignInOf(
  context: AuditContext,
  findUser: () => Promise<User | undefined>,
  failure: FailedSignIn,
  metadata: RequestMetadata,
): void {
  context.background.run(work, async () => {
    const user = await findUser();
    if (user !== undefined) await append(context, user, toEntry(user, failure, metadata));
  });
}

function toEntry(user: User, failure: FailedSignIn, metadata: RequestMetadata): AuditEntry {
  const actor = { ...user, kind: 'unauthenticated' } as const;
  return auditEntry(actor, 'login_failed', { metadata, traits: { ...failure } });
}

async function append(
  { store, limiter, metrics }: AuditContext,
  { id }: User,
  entry: AuditEntry,
): Promise<void> {
  const { allowed } = await limiter.take('failed_sign_in_entry', id, entry.at.getTime());
  if (allowed) await store.audit.append(entry);
  else metrics.unrecordedSignIns.inc();
}
