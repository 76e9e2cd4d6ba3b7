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
  readonly maxProperties?: number;
  readonly additionalProperties?: JsonSchema;
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
 * Every object of the spec has it. Without it, the API server drops unknown fields, also those of a
 * newer version, and rules would silently mean something else. The admission webhook and the status
 * refuse what is kept.
 */
export const keepUnknown = { 'x-kubernetes-preserve-unknown-fields': true } as const;

/** Fields of an object. */
export const listFields = ({ properties = {} }: JsonSchema): [string, JsonSchema][] =>
  Object.entries(properties);

/** The schema that has the fields of a field: itself, or that of each item of a list. */
export const itemOf = (schema: JsonSchema): JsonSchema => schema.items ?? schema;
