import { ConfigurationError } from './errors.ts';

/** The names of all options of a type; the compiler refuses a table that lacks one. */
export type OptionNames<T> = { readonly [Name in keyof T]-?: 1 };

/**
 * Why options are not known, with the name that was probably meant. Options that are undefined
 * count as not given.
 */
export function unknownOptions(options: object, names: Readonly<Record<string, 1>>, prefix = ''): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || Object.hasOwn(names, name)) return [];
    const meant = Object.keys(names).find((known) => isMisspelling(name, known));
    const hint = meant === undefined ? '' : `; did you mean \`${prefix}${meant}\`?`;
    return [`\`${prefix}${name}\` is not an option${hint}`];
  });
}

/** @throws {ConfigurationError} naming every option that is not known. */
export function assertKnownOptions(of: string, options: object, names: Readonly<Record<string, 1>>): void {
  const problems = unknownOptions(options, names);
  if (problems.length > 0) throw new ConfigurationError(`the options of ${of}: ${problems.join('; ')}`);
}

/** Whether names differ in case and underscores, or in at most two letters next to each other. */
function isMisspelling(name: string, known: string): boolean {
  const [a, b] = [name, known].map((text) => text.toLowerCase().replaceAll('_', ''));
  if (a === undefined || b === undefined) return false;
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  return Math.max(a.length, b.length) - start - end <= 2 && shorter > 3;
}
