import type { Environment, Setting } from '@tollgate/kit/settings';

/** The text of a setting as it is set, by whichever of its names; undefined when it is not. */
export function givenValue(
  { env: main, aliases }: Pick<Setting<unknown>, 'env' | 'aliases'>,
  env: Environment,
): string | undefined {
  return [main, ...aliases].map((variable) => env[variable]).find((value) => value !== undefined);
}
