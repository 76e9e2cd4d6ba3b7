import type { TextBounds } from '@tollgate/rules/fields';

/** The part of a structural schema of Kubernetes that the CRD uses. */
export interface JsonSchema {
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly format?: 'int32' | 'int64' | 'date-time';
  readonly default?: string | Readonly<Record<string, number>>;
  readonly enum?: readonly (string | boolean)[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-list-type'?: 'map' | 'atomic';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-validations'?: readonly { readonly rule: string; readonly message: string }[];
}

/** A text of a RateLimitConfig within its bounds; its form is part of the description. */
export function textSchema({ min, max, pattern, form }: TextBounds, description: string): JsonSchema {
  return {
    description: form === undefined ? description : `${description} Must be ${form}.`,
    type: 'string',
    ...(min === 0 ? undefined : { minLength: min }),
    maxLength: max,
    ...(pattern === undefined ? undefined : { pattern: pattern.source }),
  };
}

/** A boolean, false when absent. */
export const flagSchema = (description: string): JsonSchema => ({ description, type: 'boolean' });

/**
 * A list in which no two items have the same keys, so that several owners may each apply items of
 * their own.
 */
export function mapList(
  keys: readonly string[],
  items: JsonSchema,
  { description, maxItems }: { description: string; maxItems: number },
): JsonSchema {
  return {
    description,
    type: 'array',
    maxItems,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
    items,
  };
}

/**
 * Properties that refuse what fields are taken for: their snake_case, as in rule files, and the
 * misspellings given with what to do instead. The API server drops a field that it does not know,
 * and a rule would silently lose its limit with it; a field that it knows and never accepts is an
 * error for every client, whatever its validation mode.
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

/**
 * The API server quotes the one value of an `enum` in its error, so that is where the advice goes.
 */
const refused = (advice: string): JsonSchema => ({
  enum: [advice],
  not: {},
  'x-kubernetes-preserve-unknown-fields': true,
});

/** Fields of an object, without the properties that only refuse their name. */
export const listFields = ({ properties = {} }: JsonSchema): [string, JsonSchema][] =>
  Object.entries(properties).filter(([, { not }]) => not === undefined || Object.keys(not).length > 0);

/** The schema that has the fields of a field: itself, or that of each item of a list. */
export const itemOf = (schema: JsonSchema): JsonSchema => schema.items ?? schema;
