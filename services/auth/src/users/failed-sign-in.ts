import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { User } from './user.ts';

/**
 * Records a failed sign-in of a known user in the audit log. The limits of wrong guesses bound the
 * entries; names of accounts that do not exist are not limited, and are not recorded. Runs after
 * the response, whose time must not disclose that the user exists.
 */
export function recordFailedSignIn(
  { store, background }: Pick<Context, 'store' | 'background'>,
  user: User,
  traits: { readonly method: string; readonly reason: string; readonly factor_id?: string },
  metadata: RequestMetadata,
): void {
  const entry = auditEntry({ ...user, kind: 'unauthenticated' }, 'login_failed', { metadata, traits });
  background.run('audit entry of a failed sign-in', () => store.audit.append(entry));
}
