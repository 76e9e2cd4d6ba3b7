import swagger from '@fastify/swagger';
import packageJson from '../../package.json' with { type: 'json' };
import type { Settings } from '../config/settings.ts';
import type { AddRoutes, Api } from '../http/api.ts';
import { components } from '../http/open-api-components.ts';
import type { Context } from './context.ts';
import { type Operation, operations, type ResponseBody } from './operations.ts';

/** An OpenAPI document as JSON. */
export type OpenApiDocument = Readonly<Record<string, unknown>>;

interface RequestBody {
  readonly content: Record<string, unknown>;
}

interface OperationObject {
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
      components: {
        // Parsed boundary: TypeBox schemas are JSON Schema, as OpenAPI 3.1 requires.
        schemas: components as never,
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

/** Requires that all routes have been added. */
export function openApiDocument(api: Api): OpenApiDocument {
  return { ...api.swagger() };
}

/** They accept forms. */
const tokenPaths: readonly string[] = ['/token', '/oauth/token', '/oauth/revoke', '/oauth/introspect'];
/** They have errors of OAuth 2.0. */
const oauthPaths: readonly string[] = [...tokenPaths, '/oauth/clients/register'];

function describe(target: OperationObject, operation: Operation | undefined, path: string): void {
  if (operation === undefined) return;
  const { summary, caller, scope, response, bodyType, captcha, status = 200 } = operation;
  target.summary = summary;
  if (caller !== undefined)
    target.security = [{ [caller]: [] }, ...(scope === undefined ? [] : [{ adminKey: [scope] }])];
  target.responses = { [status]: successResponse(status, response), default: errorResponse(path) };
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

function errorResponse(path: string) {
  const oneOf = [
    ref('Error'),
    ref('VersionedError'),
    ...(oauthPaths.includes(path) ? [ref('OAuthError')] : []),
  ];
  return { description: 'Error.', ...jsonContent({ oneOf }) };
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
