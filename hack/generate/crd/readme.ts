import { readFile } from 'node:fs/promises';
import { statusSchema } from './definition.ts';
import { itemOf, type JsonSchema, listFields } from './json-schema.ts';
import { specSchema } from './spec-schema.ts';

/** An object of a RateLimitConfig, at all paths that have it. */
interface ObjectType {
  readonly name: string;
  readonly places: ObjectPlace[];
  readonly fields: Map<string, Field>;
}

interface ObjectPlace {
  /** Names of fields, as in `kubectl explain`. */
  readonly path: readonly string[];
  readonly schema: JsonSchema;
}

interface Field {
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

const begin = '<!-- Up to the end of the fields: make generate, from hack/generate/crd. -->';
const end = '<!-- End of the fields. -->';

/** The README of the CRD: the handwritten parts around the tables of all fields. */
export async function renderCrdReadme(path: string): Promise<string> {
  const current = await readFile(path, 'utf8');
  const [before, after] = [current.indexOf(begin), current.indexOf(end)];
  if (before === -1 || after < before) throw new Error(`${path} must have the lines ${begin} and ${end}`);
  const tables = listObjectTypes().map(renderTable).join('\n\n');
  return `${current.slice(0, before)}${begin}\n\n${tables}\n\n${current.slice(after)}`;
}

/** Each object once, with the fields that it has at any of its places. */
function listObjectTypes(): ObjectType[] {
  const types = new Map<string, ObjectType>();
  const places = [...listPlaces(['spec'], specSchema), ...listPlaces(['status'], statusSchema)];
  for (const place of places) {
    const name = place.path.at(-1) ?? '';
    const type = types.get(name) ?? { name, places: [], fields: new Map<string, Field>() };
    types.set(name, type);
    type.places.push(place);
    for (const [field, schema] of listFields(place.schema)) {
      const isRequired = place.schema.required?.includes(field) === true;
      if (!type.fields.has(field)) type.fields.set(field, { schema, isRequired });
    }
  }
  return [...types.values()];
}

/** An object and those within it; levels of a tree have the same fields and are listed once. */
function listPlaces(path: readonly string[], schema: JsonSchema): ObjectPlace[] {
  const children = listFields(schema).flatMap(([name, field]) =>
    path.includes(name) ? [] : listPlaces([...path, name], itemOf(field)),
  );
  return schema.properties === undefined ? [] : [{ path, schema }, ...children];
}

function renderTable(type: ObjectType): string {
  const places = type.places.map(({ path, schema }) => {
    const present = new Set(listFields(schema).map(([name]) => name));
    const missing = [...type.fields.keys()].filter((name) => !present.has(name));
    const without = missing.length === 0 ? '' : ` (without ${missing.map(code).join(', ')})`;
    return code(path.join('.')) + without;
  });
  const rows = [...type.fields].map(([name, field]) =>
    [code(name), describeType(name, field), escapeCell(field.schema.description ?? '')].join(' | '),
  );
  return [
    `### Fields of ${code(type.name)}`,
    '',
    `Path: ${places.join(', ')}`,
    '',
    '| Field | Type | Meaning |',
    '| --- | --- | --- |',
    ...rows.map((row) => `| ${row} |`),
  ].join('\n');
}

/** Type, values, bounds and default, as far as the schema has them. */
function describeType(name: string, { schema, isRequired }: Field): string {
  const type = describeKind(schema);
  const link = itemOf(schema).properties === undefined ? type : `[${type}](#fields-of-${name.toLowerCase()})`;
  const values = schema.enum?.map((value) => code(String(value))).join(', ');
  return [
    values === undefined ? link : `one of ${values}`,
    describeBounds(schema.minLength, schema.maxLength, ' characters'),
    describeBounds(schema.minItems, schema.maxItems, ' items'),
    describeBounds(schema.minimum, schema.maximum),
    isRequired ? 'required' : undefined,
    schema.type === 'boolean' ? `default ${code('false')}` : undefined,
  ]
    .filter((part) => part !== undefined)
    .join(', ');
}

function describeKind({ type, format }: JsonSchema): string {
  if (format === 'date-time') return 'time';
  return type === 'array' ? 'list' : (type ?? 'any');
}

function describeBounds(min?: number, max?: number, unit = ''): string | undefined {
  if (max === undefined) return min === undefined ? undefined : `at least ${min}${unit}`;
  return min === undefined ? `at most ${max}${unit}` : `${min} to ${max}${unit}`;
}

const code = (text: string): string => `\`${text}\``;
const escapeCell = (text: string): string => text.replaceAll(/[|*<]/g, String.raw`\$&`);
