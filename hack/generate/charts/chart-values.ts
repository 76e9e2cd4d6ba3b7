import { load } from 'js-yaml';

/** JSON Schema, as far as it is used here. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** One value of a chart, with everything that values.yaml has about it. */
export interface ChartValue {
  readonly key: string;
  /** The comment above it, as one line; empty when there is none. */
  readonly doc: string;
  /** The comment `# @schema {…}`, in addition to the type of the default value. */
  readonly schema: JsonSchema;
  readonly value: unknown;
  /**
   * The values within it; none of lists, of maps that are empty, and of maps that take any keys.
   */
  readonly children: readonly ChartValue[];
}

/** A key with its comments, found by lines: a YAML parser drops comments. */
interface KeyLine {
  readonly indent: number;
  readonly key: string;
  readonly comments: readonly string[];
}

const schemaMark = '@schema ';

/**
 * Reads a values.yaml with its comments. A comment belongs to the key right below it; an empty line
 * parts them.
 *
 * @throws Error when it is not YAML, or an annotation is not JSON.
 */
export function readChartValues(text: string): ChartValue[] {
  // A file of comments alone is no document.
  const root = text.replaceAll(/^\s*(#.*)?$/gm, '').trim() === '' ? {} : load(text);
  return getChildren(isMap(root) ? root : {}, keyLines(text), 0);
}

function keyLines(text: string): KeyLine[] {
  const found: KeyLine[] = [];
  let comments: string[] = [];
  for (const line of text.split('\n')) {
    const comment = /^\s*# ?(.*)$/.exec(line)?.[1];
    if (comment !== undefined) {
      comments.push(comment);
      continue;
    }
    const [, indent, key] = /^( *)([\w./-]+):(?: |$)/.exec(line) ?? [];
    if (indent !== undefined && key !== undefined) found.push({ indent: indent.length, key, comments });
    comments = [];
  }
  return found;
}

/** The values of a map whose keys are on the lines that begin `lines`, indented by `indent`. */
function getChildren(
  map: Readonly<Record<string, unknown>>,
  lines: readonly KeyLine[],
  indent: number,
): ChartValue[] {
  return lines.flatMap((line, at) => {
    if (line.indent !== indent || !Object.hasOwn(map, line.key)) return [];
    const end = lines.findIndex((other, index) => index > at && other.indent <= indent);
    return [chartValue(line, map[line.key], lines.slice(at + 1, end === -1 ? undefined : end))];
  });
}

function chartValue(
  { key, comments, indent }: KeyLine,
  value: unknown,
  below: readonly KeyLine[],
): ChartValue {
  const annotations = comments.filter((line) => line.startsWith(schemaMark));
  const schema = Object.assign({}, ...annotations.map((line) => parseAnnotation(line, key)));
  const isOpen = schema.additionalProperties === true;
  return {
    key,
    doc: comments.filter((line) => !annotations.includes(line)).join(' '),
    schema,
    value,
    children: isMap(value) && !isOpen ? getChildren(value, below, indent + 2) : [],
  };
}

function parseAnnotation(line: string, key: string): unknown {
  try {
    return JSON.parse(line.slice(schemaMark.length));
  } catch (cause) {
    throw new Error(`the annotation of ${key} is not JSON: ${line}`, { cause });
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Values that all charts of a release see. Charts that use them have the same in their values.yaml.
 */
const globalValues: JsonSchema = {
  type: 'object',
  description: 'Values of all charts of a release.',
  additionalProperties: false,
  properties: {
    imageRegistry: { type: 'string' },
    imagePullSecrets: { type: 'array' },
    gatewayNamespaces: { type: 'array' },
    consoleUrl: { type: 'string' },
    anyDomainNamespaces: { type: 'array' },
  },
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
 * The values.schema.json of a chart: a key that there is not is an error, and so is a value of
 * another kind. `known` are the schemas of values at the top level that say more than their
 * defaults do.
 */
export function valuesSchema(
  title: string,
  values: readonly ChartValue[],
  known: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title,
    ...toMap(
      values.filter(({ key }) => known[key] === undefined),
      { ...helmsOwn, ...known },
    ),
  };
}

function toMap(values: readonly ChartValue[], others: JsonSchema = {}): JsonSchema {
  return {
    type: 'object',
    additionalProperties: false,
    properties: { ...others, ...Object.fromEntries(values.map((value) => [value.key, toSchema(value)])) },
  };
}

function toSchema(value: ChartValue): JsonSchema {
  const description = value.doc === '' ? {} : { description: value.doc };
  const shape = value.children.length > 0 ? toMap(value.children) : toShape(value.value);
  return { ...description, ...shape, ...value.schema };
}

/** The type of a default value. An empty map accepts any keys. */
function toShape(value: unknown): JsonSchema {
  if (value === null) return {};
  if (Array.isArray(value)) return { type: 'array' };
  if (isMap(value)) return { type: 'object' };
  if (typeof value === 'number') return { type: Number.isInteger(value) ? 'integer' : 'number' };
  return { type: typeof value };
}
