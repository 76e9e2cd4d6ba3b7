import type { Schema } from './json-schema.ts';

export interface ExampleOptions {
  /** Values of members by name, wherever their type allows. Null leaves a member out. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Members of the request body of an operation. Default: required ones, else the first one. */
  readonly members?: (operationId: string) => readonly string[] | undefined;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * Adds an example to each JSON body of an OpenAPI document, made from its schema. A response of
 * which some text has no value gets none.
 *
 * @throws Error naming a member of a request without a value
 */
export function addExamples(document: Json, { values, members }: ExampleOptions): Json {
  const { components, paths } = document;
  const maker = new ExampleMaker(toJson(toJson(components).schemas), values);
  const addTo = (content: unknown, make: (schema: Schema) => unknown): Json =>
    mapValues(toJson(content), (body, type) => {
      const example = type === 'application/json' ? make(toJson(toJson(body).schema)) : undefined;
      return { ...toJson(body), ...(example !== undefined && { example }) };
    });
  const describe = (operation: Json): Json => {
    const { operationId, requestBody, responses } = operation;
    const id = String(operationId);
    const body = requestBody && {
      ...toJson(requestBody),
      content: addTo(toJson(requestBody).content, (schema) => maker.makeRequest(schema, id, members?.(id))),
    };
    return {
      ...operation,
      ...(body !== undefined && { requestBody: body }),
      responses: mapValues(toJson(responses), (response, status) => {
        const { content } = toJson(response);
        if (content === undefined || !status.startsWith('2')) return response;
        return { ...toJson(response), content: addTo(content, (schema) => maker.make(schema)) };
      }),
    };
  };
  return {
    ...document,
    paths: mapValues(toJson(paths), (methods) =>
      mapValues(toJson(methods), (operation) => describe(toJson(operation))),
    ),
  };
}

/** Schemas may refer to each other in circles. */
const maxDepth = 8;

const byFormat: Readonly<Record<string, unknown>> = {
  'date-time': '2026-01-01T09:30:00.000Z',
  uuid: '0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34',
  uri: 'https://app.example.com',
  email: 'ann@example.com',
};

class ExampleMaker {
  readonly #schemas: Json;
  readonly #values: Json;

  constructor(schemas: Json, values: Json) {
    this.#schemas = schemas;
    this.#values = values;
  }

  makeRequest(schema: Schema, operationId: string, members: readonly string[] | undefined): unknown {
    const resolved = this.#resolve(schema);
    const [first] = toList(resolved.oneOf);
    if (first !== undefined) return this.makeRequest(toJson(first), operationId, members);
    const properties = toJson(resolved.properties);
    const required = toList(resolved.required).map(String);
    const names = members ?? (required.length > 0 ? required : Object.keys(properties).slice(0, 1));
    return Object.fromEntries(
      names.map((name) => {
        const value = this.make(toJson(properties[name]), name);
        if (value === undefined)
          throw new Error(`${operationId}: the examples have no value for the member ${name}`);
        return [name, value];
      }),
    );
  }

  /** Undefined when a text has no value. */
  make(schema: Schema, name = '', depth = 0): unknown {
    const resolved = this.#resolve(schema);
    const { type, enum: allowed, format, oneOf, anyOf, minimum } = resolved;
    const own = toList(resolved.examples)[0] ?? resolved.const ?? resolved.default;
    if (own !== undefined) return own;
    const named = Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
    if (named === null) return accepts(resolved, null) ? null : undefined;
    if (named !== undefined && (format === undefined || format === 'uri') && accepts(resolved, named))
      return named;
    if (depth > maxDepth) return undefined;
    if (Array.isArray(allowed)) return allowed[0];
    for (const one of [...toList(oneOf), ...toList(anyOf)]) {
      const example = this.make(toJson(one), name, depth + 1);
      if (example !== undefined) return example;
    }
    switch (type) {
      case 'object':
        return this.#makeObject(resolved, depth);
      case 'array': {
        const item = this.make(toJson(resolved.items), name.replace(/s$/, ''), depth + 1);
        return item === undefined ? undefined : [item];
      }
      case 'string':
        return byFormat[String(format)];
      case 'integer':
      case 'number':
        return minimum ?? 1;
      case 'boolean':
        return true;
      default:
        return undefined;
    }
  }

  /** Optional members without a value are left out. */
  #makeObject({ properties, required }: Json, depth: number): unknown {
    const entries = Object.entries(toJson(properties)).map(
      ([name, schema]) => [name, this.make(toJson(schema), name, depth + 1)] as const,
    );
    const isMissing = entries.some(([name, value]) => value === undefined && toList(required).includes(name));
    return isMissing ? undefined : Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }

  #resolve(schema: Schema): Schema {
    const { $ref } = schema;
    if (typeof $ref !== 'string') return schema;
    return this.#resolve(toJson(this.#schemas[$ref.slice($ref.lastIndexOf('/') + 1)]));
  }
}

function accepts({ type, enum: allowed, anyOf, oneOf, items }: Schema, value: unknown): boolean {
  if (Array.isArray(allowed)) return allowed.includes(value);
  const alternatives = [...toList(anyOf), ...toList(oneOf)];
  if (alternatives.length > 0) return alternatives.some((one) => accepts(toJson(one), value));
  if (Array.isArray(value)) return type === 'array' && value.every((item) => accepts(toJson(items), item));
  if (value === null) return type === 'null';
  if (type === 'integer') return Number.isInteger(value);
  return type === undefined || type === typeof value;
}

function mapValues(object: Json, map: (value: unknown, key: string) => unknown): Json {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

// Parsed boundary: documents are JSON, and what is no object has no members.
const toJson = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
