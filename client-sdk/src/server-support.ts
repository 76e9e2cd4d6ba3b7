import type { ClientOptions } from './client-options.ts';
import { ConfigurationError } from './errors.ts';
import { quote } from './text.ts';

/** Options that list what the authorization server supports, as its metadata do. */
export const supportListNames = [
  'tokenEndpointAuthMethodsSupported',
  'codeChallengeMethodsSupported',
  'dpopSigningAlgValuesSupported',
  'idTokenSigningAlgValuesSupported',
] as const satisfies readonly (keyof ClientOptions)[];

type SupportListName = (typeof supportListNames)[number];

type SupportLists = { readonly [Name in SupportListName]?: readonly string[] | undefined };

/**
 * Checks that the server lists a method or algorithm. Without a list, which metadata may omit, it
 * counts as supported.
 *
 * @param remedy what to do if it does not
 * @throws {ConfigurationError} naming the method or algorithm, and the list
 */
export function assertSupported(
  lists: SupportLists,
  option: SupportListName,
  { name, remedy }: { readonly name: string; readonly remedy: string },
): void {
  const listed = lists[option];
  if (listed === undefined || listed.includes(name)) return;
  throw new ConfigurationError(
    `the authorization server does not support ${name}, only ${quote(listed.join(', '))}: ${remedy}, or correct the list with \`${option}\``,
  );
}
