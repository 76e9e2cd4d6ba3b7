import swagger from '@fastify/swagger';
import packageJson from '../../../../package.json' with { type: 'json' };
import type { Settings } from '../../../settings/settings.ts';
import type { Api } from '../api.ts';
import { components } from './components.ts';
import { type Operation, operations } from './operations.ts';

/** A document of OpenAPI, as JSON. */
export type OpenApiDocument = Readonly<Record<string, unknown>>;

/** What is filled in of an operation that the schemas of its route began. */
interface OperationObject {
  summary?: string;
  security?: readonly Readonly<Record<string, readonly string[]>>[];
  responses?: unknown;
  requestBody?: { content: Record<string, unknown> };
}

/** Collects the schemas of the routes that are added later, and serves what comes of them at `/openapi.json`. */
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
        // Parsed boundary: TypeBox makes JSON Schema, which is what version 3.1 takes.
        schemas: components as never,
        securitySchemes: {
          user: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'An access token.' },
          admin: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'An access token with a role of SVC_JWT_ADMIN_ROLES.',
          },
        },
      },
    },
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new TypeError('the document is one of OpenAPI 3');
      const { openapiObject } = document;
      // Parsed boundary: all that the library puts below a path are operations.
      for (const [path, methods] of Object.entries(openapiObject.paths ?? {}))
        for (const [method, operation] of Object.entries(methods ?? {}))
          describe(operation as OperationObject, operations[`${method.toUpperCase()} ${path}`], path);
      return openapiObject;
    },
  });
}

/** The document of an application whose routes are all there. */
export function openApiDocument(api: Api): OpenApiDocument {
  return { ...api.swagger() };
}

function describe(target: OperationObject, operation: Operation | undefined, path: string): void {
  if (operation === undefined) return;
  const { summary, caller, answer, status = 200 } = operation;
  target.summary = summary;
  if (caller !== undefined) target.security = [{ [caller]: [] }];
  target.responses = { [status]: success(answer, status), default: failure(path) };
  const json = target.requestBody?.content['application/json'];
  if (path === '/token' && target.requestBody !== undefined)
    target.requestBody.content['application/x-www-form-urlencoded'] = json;
}

function success(answer: Operation['answer'], status: number) {
  if (status === 204) return { description: 'Done.' };
  if (status === 303)
    return {
      description: 'To the application, with tokens, a code or an error in the fragment or the query.',
      headers: { Location: { schema: { type: 'string', format: 'uri' } } },
    };
  return { description: 'Done.', ...jsonOf(schemaOf(answer)) };
}

function failure(path: string) {
  const oneOf = [ref('Error'), ref('VersionedError'), ...(path === '/token' ? [ref('OAuthError')] : [])];
  return { description: 'Refused or failed.', ...jsonOf({ oneOf }) };
}

function schemaOf(answer: Operation['answer']): object {
  if (answer === undefined) return { type: ['object', 'array'] };
  if (typeof answer === 'string') return ref(answer);
  return 'oneOf' in answer ? { oneOf: answer.oneOf.map(ref) } : { type: 'array', items: ref(answer[0]) };
}

function ref(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function jsonOf(schema: object) {
  return { content: { 'application/json': { schema } } };
}
