import type { JsonSchema } from './json-schema.ts';

/**
 * Properties that refuse what fields are taken for: their snake_case, as in rule files, and the misspellings given with
 * what to do instead. The API server drops a field that it does not know, and a rule would silently lose its limit with
 * it; a field that it knows and never accepts is an error for every client, whatever it is told to validate.
 */
export function misspellings(
  fields: readonly string[],
  others: Readonly<Record<string, string>> = {},
): Readonly<Record<string, JsonSchema>> {
  const inSnakeCase = fields
    .filter((field) => snakeCase(field) !== field)
    .map((field): [string, string] => [snakeCase(field), `use ${field}`]);
  return Object.fromEntries(
    [...inSnakeCase, ...Object.entries(others)].map(([name, advice]) => [name, refused(advice)]),
  );
}

const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The API server quotes the one value of an `enum` in its error, so that is where the advice goes. */
const refused = (advice: string): JsonSchema => ({
  enum: [advice],
  not: {},
  'x-kubernetes-preserve-unknown-fields': true,
});
