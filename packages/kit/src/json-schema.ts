/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 has it. */
export type Schema = Readonly<Record<string, unknown>>;

export const text = { type: 'string' };
export const flag = { type: 'boolean' };
export const time = { type: 'string', format: 'date-time' };
export const count = { type: 'integer', minimum: 0 };

/** Members are required, except for those named. */
export function object(
  properties: Readonly<Record<string, Schema>>,
  { optional = [] }: { readonly optional?: readonly string[] } = {},
): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required, additionalProperties: false };
}

export function list(items: Schema): Schema {
  return { type: 'array', items };
}

/** A schema of the components of an OpenAPI document. */
export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}
