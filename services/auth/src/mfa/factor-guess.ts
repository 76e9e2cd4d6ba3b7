import type { Context } from '../context.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import type { User } from '../users/user.ts';

/**
 * A guess of a second factor or a recovery code. Each kind has its own counts; a network in which
 * either was verified is known for both. Only an attacker who has the first factor can guess, so
 * the owner gets a mail when the limit of the account is reached; one a day.
 */
export function factorGuess(
  context: Context,
  { kind, user }: { readonly kind: 'factor' | 'recovery_code'; readonly user: User },
  metadata: RequestMetadata,
) {
  const { limiter, logger } = context;
  return {
    kind,
    // Not that of passwords: who knows the password has a known network there.
    contact: `factor ${user.id}`,
    onAccountLimit: async () => {
      logger.warn({ request_id: metadata.requestId, user_id: user.id, kind }, 'second factors locked');
      const { allowed } = await limiter.take('factor_locked_mail', user.id, metadata.nowMs);
      if (allowed) notify(context, { user, kind: 'MFA_FACTORS_LOCKED_NOTIFICATION' }, metadata);
    },
  };
}
