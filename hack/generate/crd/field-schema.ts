import { type NamedField, nameBounds } from '@tollgate/rules/fields';
import { resourceSpelling } from '@tollgate/rules/spelling';
import { resourceTexts } from '@tollgate/rules/values';
import { flagSchema, type JsonSchema, keepUnknown, mapList, textSchema } from './json-schema.ts';

/** The schemas of fields without parts, by name. */
export const schemasOf = (fields: readonly NamedField[]): Readonly<Record<string, JsonSchema>> =>
  Object.fromEntries(
    fields.flatMap((field) => {
      const schema = schemaOf(field);
      return schema === undefined ? [] : [[field.name, schema]];
    }),
  );

function schemaOf(field: NamedField): JsonSchema | undefined {
  const description = describe(field);
  switch (field.kind) {
    case 'text':
    case 'percent':
      return textSchema(field.bounds, description);
    case 'choice':
      return { description, type: 'string', enum: resourceTexts(field.values) };
    case 'flag':
      return flagSchema(description);
    case 'count':
      return { description, type: 'integer', format: 'int64', minimum: field.min, maximum: field.max };
    case 'names':
      return mapList(['name'], replaced, { description, maxItems: field.maxItems });
    case 'json':
      return { description, type: 'object', ...keepUnknown };
    default:
      return undefined;
  }
}

/** The description, with the algorithms that have the field. */
function describe({ description, algorithms }: NamedField): string {
  if (algorithms === undefined) return description;
  return `${description} For ${algorithms.map((name) => resourceSpelling[name]).join(' and ')} only.`;
}

const replaced: JsonSchema = {
  type: 'object',
  required: ['name'],
  properties: { name: textSchema(nameBounds, 'Name of a limit of the same domain.') },
  ...keepUnknown,
};

/** The fields that an object must have. */
export const requiredOf = (fields: readonly NamedField[]): readonly string[] =>
  fields.filter(({ kind, always }) => kind === 'text' && always === true).map(({ name }) => name);
