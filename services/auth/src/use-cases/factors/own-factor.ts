import type { Factor } from '../../domain/factor.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';

/** A factor of the user. @throws AppError `mfa_factor_not_found`: factors of others do not exist. */
export function ownFactor(user: User, factorId: string): Factor {
  const factor = user.factors.find(({ id }) => id === factorId.toLowerCase());
  if (factor === undefined) throw errors.mfa_factor_not_found();
  return factor;
}
