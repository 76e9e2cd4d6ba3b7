import swagger from '@fastify/swagger';
import { addExamples } from '@tollgate/kit/open-api-examples';
import packageJson from '../../package.json' with { type: 'json' };
import type { Settings } from '../config/settings.ts';
import type { AddRoutes, Api } from '../http/api.ts';
import { type ComponentName, components } from '../http/open-api-components.ts';
import { exampleValues } from '../http/open-api-examples.ts';
import type { Context } from './context.ts';
import type { ResponseBody } from './operations/operation.ts';
import { operations, operationTags, type TaggedOperation } from './operations.ts';

/** An OpenAPI document as JSON. */
export type OpenApiDocument = Readonly<Record<string, unknown>>;

interface RequestBody {
  readonly content: Record<string, unknown>;
}

interface OperationObject {
  operationId?: string;
  tags?: readonly string[];
  summary?: string;
  security?: readonly Readonly<Record<string, readonly string[]>>[];
  responses?: unknown;
  requestBody?: RequestBody;
}

/** Collects the schemas of the routes that are added later. */
export function addOpenApi(api: Api, { apiExternalUrl }: Pick<Settings, 'apiExternalUrl'>): void {
  void api.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Tollgate user authentication server',
        version: packageJson.version,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: apiExternalUrl }],
      tags: operationTags,
      components: {
        // Parsed boundary: TypeBox schemas are JSON Schema, as OpenAPI 3.1 requires.
        schemas: components as never,
        responses: errorResponses,
        securitySchemes: {
          user: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'An access token.' },
          admin: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'An access token with a role in SVC_JWT_ADMIN_ROLES.',
          },
          adminKey: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key with the admin scope that the operation names.',
          },
        },
      },
    },
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new TypeError('expected an OpenAPI 3 document');
      const { openapiObject } = document;
      // Parsed boundary: the library puts only operations below a path.
      for (const [path, methods] of Object.entries(openapiObject.paths ?? {}))
        for (const [method, operation] of Object.entries(methods ?? {}))
          describe(operation as OperationObject, operations[`${method.toUpperCase()} ${path}`], path);
      return openapiObject;
    },
  });
}

const refused = 'The request was refused.';
const failed = 'The server failed to answer. Try again later.';
const oauthErrors: readonly ComponentName[] = ['OAuthError', 'Error', 'VersionedError'];
const errors: readonly ComponentName[] = ['Error', 'VersionedError'];

const errorResponses = {
  Refused: errorResponse(refused, errors),
  Failed: errorResponse(failed, errors),
  OAuthRefused: errorResponse(refused, oauthErrors),
  OAuthFailed: errorResponse(failed, oauthErrors),
};

function errorResponse(description: string, oneOf: readonly ComponentName[]) {
  return { description, ...jsonContent({ oneOf: oneOf.map(ref) }) };
}

/** Requires that all routes have been added. */
export function openApiDocument(api: Api): OpenApiDocument {
  // Parsed boundary: the library's type of a document has no members of any name.
  const document = api.swagger() as unknown as OpenApiDocument;
  return addExamples(document, { values: exampleValues, members: (id) => examples.get(id) });
}

/** Members in the example of a body, by `operationId`. */
const examples = new Map(Object.values(operations).map(({ id, example }) => [id, example]));

/** They accept forms. */
const tokenPaths: readonly string[] = ['/token', '/oauth/token', '/oauth/revoke', '/oauth/introspect'];
/** They have errors of OAuth 2.0. */
const oauthPaths: readonly string[] = [...tokenPaths, '/oauth/clients/register'];

function describe(target: OperationObject, operation: TaggedOperation | undefined, path: string): void {
  if (operation === undefined) return;
  const { id, tag, summary, caller, scope, response, bodyType, captcha, status = 200 } = operation;
  target.operationId = id;
  target.tags = [tag];
  target.summary = summary;
  target.security = [
    ...(caller === undefined ? [] : [{ [caller]: [] }]),
    ...(scope === undefined ? [] : [{ adminKey: [scope] }]),
  ];
  target.responses = {
    [status]: successResponse(status, response),
    '4XX': { $ref: `#/components/responses/${oauthPaths.includes(path) ? 'OAuthRefused' : 'Refused'}` },
    '5XX': { $ref: `#/components/responses/${oauthPaths.includes(path) ? 'OAuthFailed' : 'Failed'}` },
  };
  if (bodyType !== undefined)
    target.requestBody = { content: { [bodyType]: { schema: { type: 'string' } } } };
  if (captcha) target.requestBody = withCaptcha(target.requestBody);
  const json = target.requestBody?.content['application/json'];
  if (tokenPaths.includes(path) && target.requestBody !== undefined)
    target.requestBody.content['application/x-www-form-urlencoded'] = json;
}

/** Adds the member with the CAPTCHA token, which is read before the others. */
function withCaptcha(body: RequestBody | undefined): RequestBody {
  // Parsed boundary: the schema of a body, which `body()` makes.
  const { schema } = (body?.content['application/json'] ?? {}) as { schema?: { properties?: object } };
  const member = { type: 'object', properties: { captcha_token: { type: 'string' } } };
  const properties = { ...schema?.properties, gotrue_meta_security: member };
  return { content: { 'application/json': { schema: { type: 'object', ...schema, properties } } } };
}

function successResponse(status: number, response: ResponseBody | undefined) {
  if (status === 204) return { description: 'Success.' };
  if (response === undefined)
    return {
      description:
        'Redirect to the application, with tokens, a code or an error in the fragment or query; or to the provider.',
      headers: { Location: { schema: { type: 'string', format: 'uri' } } },
    };
  return { description: 'Success.', ...jsonContent(responseSchema(response)) };
}

function responseSchema(response: ResponseBody): object {
  if (typeof response === 'string') return ref(response);
  return 'oneOf' in response
    ? { oneOf: response.oneOf.map(ref) }
    : { type: 'array', items: ref(response[0]) };
}

function ref(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function jsonContent(schema: object) {
  return { content: { 'application/json': { schema } } };
}

/** @see https://spec.openapis.org/oas/v3.1.0 */
export const addOpenApiRoutes: AddRoutes<Context> = (api) => {
  let json: string | undefined;
  api.get('/openapi.json', (_request, reply) => {
    // Cached: the route is not authenticated.
    json ??= JSON.stringify(openApiDocument(api));
    return reply
      .header('cache-control', 'public, max-age=300')
      .type('application/json; charset=utf-8')
      .send(json);
  });
};
