import { ConfigurationError } from '../../errors/configuration-error.ts';

/**
 * Gives a grant that no browser takes part in an `authorizationUrl` that says so. It is not in the type: it is for callers without
 * types, who would else read that undefined is not a function.
 */
export function withoutAuthorizationUrl<Strategy extends object>(
  grant: string,
  strategy: Strategy,
): Strategy {
  const authorizationUrl = (): never => {
    throw new ConfigurationError(`the ${grant} grant has no authorization URL: no browser takes part in it`);
  };
  return { ...strategy, authorizationUrl };
}
