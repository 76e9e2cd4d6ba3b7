import { ref, type Schema } from './json-schema.ts';
import { addExamples } from './open-api-examples.ts';

/** A request of an API, as the server accepts it and its OpenAPI document describes it. */
export interface ApiOperation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With parameters in braces: `/v1/objects/{name}`. */
  readonly path: string;
  /** The right that callers need. */
  readonly right: string;
  /** Name of a tag. */
  readonly tag: string;
  readonly summary: string;
  /** Schemas of the parameters in the path, and in the query, by their names. */
  readonly params?: Readonly<Record<string, Schema>>;
  readonly query?: Readonly<Record<string, Schema>>;
  /** Names of the schemas of the bodies. */
  readonly request?: string;
  readonly response: string;
}

interface Api {
  readonly title: string;
  readonly version: string;
  /** URL of a server. */
  readonly server: string;
  /** Descriptions of tags by name. */
  readonly tags: Readonly<Record<string, string>>;
  /** Operations by `operationId`. */
  readonly operations: Readonly<Record<string, ApiOperation>>;
  /** Schemas by name, with `Error` among them. */
  readonly schemas: Readonly<Record<string, Schema>>;
  /** Description of the bearer token. */
  readonly token: string;
  /** Description of a response with a status of 500 or more. */
  readonly failed: string;
  /** Values of members by name in the examples of bodies. */
  readonly examples: Readonly<Record<string, unknown>>;
}

/** The OpenAPI document of an API. @see https://spec.openapis.org/oas/v3.1.0 */
export function openApiDocument(api: Api): object {
  const { title, version, server, tags, operations, schemas, token, failed, examples } = api;
  const document = {
    openapi: '3.1.0',
    info: { title, version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: server }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths: describePaths(operations),
    components: {
      schemas,
      responses: {
        Refused: { description: 'The request was refused.', ...json('Error') },
        Failed: { description: failed, ...json('Error') },
      },
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: token } },
    },
  };
  return addExamples(document, { values: examples });
}

function describePaths(operations: Api['operations']): Readonly<Record<string, object>> {
  const byPath = Object.groupBy(Object.entries(operations), ([, { path }]) => path);
  return Object.fromEntries(
    Object.entries(byPath).map(([path, ofPath = []]) => [path, Object.fromEntries(ofPath.map(describe))]),
  );
}

/** The method, and what the document says of it. */
function describe([operationId, operation]: [string, ApiOperation]): [string, object] {
  const { method, tag, summary, right, params = {}, query = {}, request, response } = operation;
  const parameters = [
    ...Object.entries(params).map((one) => describeParameter('path', one)),
    ...Object.entries(query).map((one) => describeParameter('query', one)),
  ];
  const description = {
    ...{ operationId, tags: [tag], summary, security: [{ token: [right] }] },
    ...(parameters.length > 0 && { parameters }),
    ...(request !== undefined && { requestBody: { required: true, ...json(request) } }),
    responses: {
      200: { description: 'Success.', ...json(response) },
      '4XX': { $ref: '#/components/responses/Refused' },
      '5XX': { $ref: '#/components/responses/Failed' },
    },
  };
  return [method.toLowerCase(), description];
}

function describeParameter(place: 'path' | 'query', [name, schema]: [string, Schema]): object {
  const { description, ...rest } = schema;
  return {
    ...{ name, in: place },
    ...(place === 'path' && { required: true }),
    ...(description !== undefined && { description }),
    schema: rest,
  };
}

function json(schema: string) {
  return { content: { 'application/json': { schema: ref(schema) } } };
}
