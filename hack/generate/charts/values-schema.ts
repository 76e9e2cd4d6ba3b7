import { type ChartValue, isMap, type JsonSchema } from './chart-values.ts';

/**
 * Values that all charts of a release see; those that use them have the same in their values.yaml.
 */
const globalValues: JsonSchema = {
  type: 'object',
  description: 'Values of all charts of a release.',
  additionalProperties: false,
  properties: { imageRegistry: { type: 'string' }, imagePullSecrets: { type: 'array' } },
};

/** Keys that Helm puts among the values of a chart. */
const helmsOwn: JsonSchema = {
  global: globalValues,
  common: {
    type: 'object',
    description: 'Of the library chart; not used.',
    additionalProperties: false,
    properties: { global: globalValues },
  },
  enabled: { type: 'boolean', description: 'Read by a chart that has this one as a part.' },
};

/**
 * The values.schema.json of a chart: a key that there is not is an error, and so is a value of another kind. `known` are the
 * schemas of values at the top level that say more than their defaults do.
 */
export function valuesSchema(
  title: string,
  values: readonly ChartValue[],
  known: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title,
    ...mapOf(
      values.filter(({ key }) => known[key] === undefined),
      { ...helmsOwn, ...known },
    ),
  };
}

function mapOf(values: readonly ChartValue[], others: JsonSchema = {}): JsonSchema {
  return {
    type: 'object',
    additionalProperties: false,
    properties: { ...others, ...Object.fromEntries(values.map((value) => [value.key, schemaOf(value)])) },
  };
}

function schemaOf(value: ChartValue): JsonSchema {
  const description = value.doc === '' ? {} : { description: value.doc };
  const shape = value.children.length > 0 ? mapOf(value.children) : shapeOf(value.value);
  return { ...description, ...shape, ...value.schema };
}

/** What a default value tells. An empty map takes any keys. */
function shapeOf(value: unknown): JsonSchema {
  if (value === null) return {};
  if (Array.isArray(value)) return { type: 'array' };
  if (isMap(value)) return { type: 'object' };
  if (typeof value === 'number') return { type: Number.isInteger(value) ? 'integer' : 'number' };
  return { type: typeof value };
}
