import { isAppError, toPublicError } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { ServerState } from '../server-state.ts';
import { type ClientQuery, listClients } from './clients.ts';
import { readPageQuery } from './cursor.ts';
import { getObject, getObjectVersion, listObjects, type ObjectName, type ObjectQuery } from './objects.ts';
import { type OperationId, operations, type Right } from './operations.ts';
import { schemas } from './schemas.ts';
import { getStatus } from './status.ts';
import { validateManifests } from './validate.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The right that callers of the admin API need. */
    readonly right?: Right;
  }
}

/** Lets a request pass. @throws AppError */
export type Authenticate = (request: FastifyRequest, right: Right) => Promise<void> | void;

type Handlers = Readonly<Record<OperationId, (request: FastifyRequest) => object | Promise<object>>>;

type Listed<T> = Omit<T, 'after'> & { readonly limit: number; readonly cursor?: string };

// Parsed boundary: the schemas of the operations have checked parameters and bodies.
const handlersOf = (state: ServerState): Handlers => ({
  getStatus: () => getStatus(state),
  getSettings: () => state.report.get(),
  listObjects: ({ query }) => listObjects(state, readPageQuery(query as Listed<ObjectQuery>)),
  getObject: ({ params }) => getObject(state, params as ObjectName),
  getObjectVersion: ({ params }) =>
    getObjectVersion(state, params as ObjectName & { readonly generation: number }),
  validateManifests: ({ body }) =>
    validateManifests(state, (body as { readonly manifests: string }).manifests),
  listClients: ({ query }) => listClients(state, readPageQuery(query as Listed<ClientQuery>)),
});

const prefix = '/v1';

/** The text of a dry run, in which each quote and end of a line is escaped. */
const bodyLimitBytes = 2 * 1024 * 1024;

/** The admin API. @see docs/xds-admin-api.md */
export function addAdminApi(app: FastifyInstance, state: ServerState, authenticate: Authenticate): void {
  const handlers = Object.entries(handlersOf(state));
  const addRoutes = (api: FastifyInstance, _options: object, done: () => void): void => {
    api.addHook('onRequest', async (request) => {
      // Unknown paths need a token, too.
      await authenticate(request, request.routeOptions.config.right ?? 'read');
    });
    api.setErrorHandler<FastifyError>((error, _request, reply) => sendError(error, reply, state.logger));
    api.setNotFoundHandler(() => {
      throw errors.path_not_found();
    });
    for (const [id, handler] of handlers) {
      // Parsed boundary: entries lose the type of their keys.
      const operation = operations[id as OperationId];
      const { method, path, right } = operation;
      api.route({
        method,
        url: path.slice(prefix.length).replaceAll(/\{(\w+)\}/g, ':$1'),
        config: { right },
        schema: {
          ...('params' in operation && { params: toSchema(operation.params) }),
          ...('query' in operation && { querystring: toSchema(operation.query) }),
          ...('request' in operation && { body: schemas[operation.request] }),
        },
        bodyLimit: bodyLimitBytes,
        handler: async (request) => await handler(request),
      });
    }
    done();
  };
  void app.register(addRoutes, { prefix });
}

const toSchema = (properties: Readonly<Record<string, object>>) => ({
  ...{ type: 'object', properties, additionalProperties: false },
});

function sendError(error: FastifyError, reply: FastifyReply, logger: Logger): FastifyReply {
  const known = isAppError(error) ? error : toAppError(error);
  const { code, message, httpStatus } = toPublicError(known);
  if (httpStatus >= 500) logger.error({ err: error }, 'failed to answer a request of the admin API');
  if (httpStatus === 401) reply.header('www-authenticate', 'Bearer');
  return reply.code(httpStatus).send({ code, message });
}

/** Below 500 the error is fastify's, and its message is public. */
function toAppError(error: FastifyError) {
  const { statusCode: httpStatus = 500, message } = error;
  if (httpStatus >= 500) return errors.internal_error({ cause: error });
  return httpStatus === 413 ? errors.body_too_large() : errors.invalid_request({ message, httpStatus });
}
