import swagger from '@fastify/swagger';
import packageJson from '../../package.json' with { type: 'json' };
import type { Settings } from '../config/settings.ts';
import type { AddRoutes, Api } from './api.ts';
import { type ComponentName, components } from './open-api-components.ts';

/** What the document says of a route besides what its schemas do. */
export interface Operation {
  readonly summary: string;
  /** Whose token it takes; nobody's when absent. */
  readonly caller?: 'user' | 'admin';
  /** What it answers: the name of a component, a list of one, or several of which it is one. An object of no interest when absent. */
  readonly answer?: ComponentName | readonly [ComponentName] | { readonly oneOf: readonly ComponentName[] };
  /** Status of the answer. Default 200. */
  readonly status?: 200 | 204 | 303;
}

const user = { caller: 'user' } as const;
const admin = { caller: 'admin' } as const;

/** Every route as `METHOD /path`, parameters in braces. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /health': { summary: 'Name and version of the server' },
  'GET /ready': {
    summary: 'Whether the server can work: 200, or 503 while the database is away',
  },
  'GET /settings': { summary: 'What the server lets users do', answer: 'Settings' },
  'GET /openapi.json': { summary: 'This document' },
  'GET /.well-known/jwks.json': { summary: 'Public keys of access tokens (RFC 7517)' },

  'POST /signup': {
    summary: 'Sign up by email or phone; with neither, as an anonymous user',
    answer: { oneOf: ['Session', 'User'] },
  },
  'POST /token': {
    summary: 'Get tokens: by password, refresh token or PKCE code; a form is answered as RFC 6749 has it',
    answer: 'Session',
  },
  'POST /otp': { summary: 'Send a link or a code to sign in with' },
  'POST /magiclink': { summary: 'Send a link to sign in with; /otp is newer' },
  'POST /recover': { summary: 'Send a link for a new password' },
  'POST /resend': { summary: 'Send a link or a code once more' },
  'GET /verify': { summary: 'Follow a link: signs in and redirects', status: 303 },
  'POST /verify': { summary: 'Spend a code or the token of a link', answer: 'Session' },

  'GET /user': { ...user, summary: 'The caller', answer: 'User' },
  'PUT /user': {
    ...user,
    summary: 'Change email, phone, password or metadata of the caller',
    answer: 'User',
  },
  'GET /reauthenticate': { ...user, summary: 'Send a nonce, which a change of password may ask for' },
  'POST /logout': { ...user, summary: 'End sessions: `global`, `local` or `others`', status: 204 },
  'GET /user/sessions': { ...user, summary: 'The sessions of the caller' },
  'DELETE /user/sessions': { ...user, summary: 'End sessions of the caller: as /logout does' },
  'DELETE /user/sessions/{session_id}': { ...user, summary: 'End a session of the caller' },

  'POST /factors': { ...user, summary: 'Enroll a second factor' },
  'POST /factors/{factor_id}/challenge': { ...user, summary: 'Begin to prove a factor' },
  'POST /factors/{factor_id}/verify': {
    ...user,
    summary: 'Prove a factor: a session with aal2',
    answer: 'Session',
  },
  'DELETE /factors/{factor_id}': { ...user, summary: 'Remove a factor' },

  'POST /invite': { ...admin, summary: 'Invite a user by email', answer: 'User' },
  'GET /admin/users': {
    ...admin,
    summary: 'Users, in pages (`X-Total-Count`, `Link`)',
    answer: 'UserList',
  },
  'POST /admin/users': { ...admin, summary: 'Create a user', answer: 'User' },
  'GET /admin/users/{user_id}': { ...admin, summary: 'A user', answer: 'User' },
  'POST /admin/users/{user_id}': { ...admin, summary: 'Create a user with this id', answer: 'User' },
  'PUT /admin/users/{user_id}': { ...admin, summary: 'Change a user; `ban_duration` bans', answer: 'User' },
  'DELETE /admin/users/{user_id}': { ...admin, summary: 'Delete a user' },
  'GET /admin/users/{user_id}/sessions': { ...admin, summary: 'The sessions of a user' },
  'DELETE /admin/users/{user_id}/sessions': { ...admin, summary: 'End all sessions of a user' },
  'DELETE /admin/users/{user_id}/sessions/{session_id}': { ...admin, summary: 'End a session of a user' },
  'GET /admin/users/{user_id}/factors': { ...admin, summary: 'Second factors of a user', answer: ['Factor'] },
  'PUT /admin/users/{user_id}/factors/{factor_id}': {
    ...admin,
    summary: 'Change a factor',
    answer: 'Factor',
  },
  'DELETE /admin/users/{user_id}/factors/{factor_id}': {
    ...admin,
    summary: 'Remove a factor',
    answer: 'Factor',
  },
  'POST /admin/generate_link': { ...admin, summary: 'Make a link without sending it', answer: 'ActionLink' },
  'GET /admin/audit': { ...admin, summary: 'The audit log, newest first' },
};

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

/** The description of the API that it serves itself. @see https://spec.openapis.org/oas/v3.1.0 */
export const addOpenApiRoutes: AddRoutes = (api) => {
  let json: string | undefined;
  api.get('/openapi.json', (_request, reply) => {
    // Once: it does not change, and serializing it for each request would be a cost that anyone can cause.
    json ??= JSON.stringify(openApiDocument(api));
    return reply
      .header('cache-control', 'public, max-age=300')
      .type('application/json; charset=utf-8')
      .send(json);
  });
};
