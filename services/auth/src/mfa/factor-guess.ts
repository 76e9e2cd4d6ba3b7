import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import { signOut } from '../sessions/sessions.ts';
import type { Factor } from '../users/factor.ts';
import type { User } from '../users/user.ts';
import type { MfaContext } from './context.ts';

/**
 * A guess of a second factor or a recovery code. Each kind has its own counts; a network in which
 * either was verified is known for both. Only an attacker who has the first factor can guess, so
 * the owner gets a mail when the limit of the account is reached; one a day.
 */
export function factorGuess(
  context: MfaContext,
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

/**
 * Lets a hook reject a second factor, after the code has been verified. A rejection ends all
 * sessions of the user.
 *
 * @throws AppError `mfa_verification_rejected` for the decision `reject`, or the error of the hook
 */
export async function checkFactorAttempt(
  context: MfaContext,
  { user, factor, valid }: { readonly user: User; readonly factor: Factor; readonly valid: boolean },
  metadata: RequestMetadata,
): Promise<void> {
  const reply = await context.hooks.call(
    'MFA_VERIFICATION_ATTEMPT',
    { user_id: user.id, factor_id: factor.id, factor_type: factor.type, valid },
    metadata,
  );
  if (reply.decision !== 'reject') return;
  await signOut(context, { user, sessionId: undefined, scope: 'global' }, metadata);
  throw errors.mfa_verification_rejected(reply.message ? { message: reply.message } : {});
}
