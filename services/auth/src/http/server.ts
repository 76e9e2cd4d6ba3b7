import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { HttpServer } from '@tollgate/kit/http-server';
import type { Tracing } from '@tollgate/kit/telemetry';
import { fastify } from 'fastify';
import type { Registry } from 'prom-client';
import {
  addAdminAuditRoutes,
  addAdminFactorRoutes,
  addAdminLinkRoutes,
  addAdminRedirectRoutes,
  addAdminSessionRoutes,
} from '../admin/routes.ts';
import { addAdminUserRoutes } from '../admin/user-routes.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { addKeyRoutes } from '../keys/key-source.ts';
import { addMailboxRoutes } from '../messages/mailbox.ts';
import { addFactorRoutes } from '../mfa/routes.ts';
import { addIdentityRoutes } from '../providers/identities.ts';
import { addProviderRoutes } from '../providers/routes.ts';
import { addLogoutRoutes, addSessionRoutes } from '../sessions/routes.ts';
import { addDisabledRoutes } from '../sign-in/providers.ts';
import { addOtpRoutes, addTokenRoutes } from '../sign-in/routes.ts';
import { addSignUpRoutes } from '../sign-up/routes.ts';
import { addUserRoutes } from '../users/routes.ts';
import { addVerifyRoutes } from '../verification/routes.ts';
import { addEventRoutes } from '../webhooks/routes.ts';
import type { AddRoutes, Api } from './api.ts';
import { addBodyParsers, bodyLimits } from './body.ts';
import { sendError } from './error-response.ts';
import { addAccessLog, addRequestMetrics, addTracing } from './observability.ts';
import { addOpenApi, addOpenApiRoutes, type OpenApiDocument, openApiDocument } from './open-api.ts';
import { addCors, addUrlChecks, guardRoutes, trackRoutes } from './request-guards.ts';
import { limitForwardedFor, requestIds } from './request-metadata.ts';
import { addStatusRoutes } from './status.ts';

const allRoutes: readonly AddRoutes[] = [
  addStatusRoutes,
  addKeyRoutes,
  addOpenApiRoutes,
  addSignUpRoutes,
  addMailboxRoutes,
  addTokenRoutes,
  addOtpRoutes,
  addVerifyRoutes,
  addUserRoutes,
  addSessionRoutes,
  addLogoutRoutes,
  addFactorRoutes,
  addAdminUserRoutes,
  addAdminLinkRoutes,
  addAdminRedirectRoutes,
  addAdminAuditRoutes,
  addEventRoutes,
  addAdminFactorRoutes,
  addAdminSessionRoutes,
  addProviderRoutes,
  addIdentityRoutes,
  addDisabledRoutes,
];

/** All headers together: an access token of up to 15 KiB, cookies and others. */
const maxHeaderBytes = 32 * 1024;

interface Observability {
  readonly tracing: Tracing;
  /** Undefined if metrics are off. */
  readonly registry: Registry | undefined;
}

/** The REST API. */
export class ApiServer extends HttpServer {
  readonly #api: Api;

  constructor(context: Context, observability: Observability) {
    const { settings } = context;
    const api = createApi(context, observability);
    super(api, { host: settings.apiHost, port: settings.port });
    this.#api = api;
  }

  async openApi(): Promise<OpenApiDocument> {
    await this.#api.ready();
    return openApiDocument(this.#api);
  }
}

function createApi(context: Context, { tracing, registry }: Observability): Api {
  const { settings, logger } = context;
  const api: Api = fastify({
    bodyLimit: bodyLimits.small,
    http: { maxHeaderSize: maxHeaderBytes },
    requestTimeout: settings.maxRequestDurationMs,
    handlerTimeout: settings.maxRequestDurationMs,
    forceCloseConnections: 'idle',
    trustProxy: settings.trustedProxies.length > 0 ? [...settings.trustedProxies] : false,
    genReqId: requestIds(settings),
    routerOptions: { ignoreTrailingSlash: true },
    // No type coercion; unknown members are ignored.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  }).withTypeProvider<TypeBoxTypeProvider>();
  limitForwardedFor(api);
  // Before the other hooks, so that the requests they reject are recorded.
  addTracing(api, tracing);
  addRequestMetrics(api, registry);
  addCors(api, settings);
  addOpenApi(api, settings);
  addBodyParsers(api);
  addAccessLog(api, logger);
  // After the CORS plugin has added its hooks: browsers hide a response without CORS headers.
  api.after(() => {
    addUrlChecks(api);
    guardRoutes(api, context);
  });
  api.setErrorHandler((thrown, request, reply) => sendError(thrown, { request, reply, logger }));
  api.setNotFoundHandler(() => {
    throw errors.not_found();
  });
  // In a separate scope, which starts once the plugins above have loaded.
  void api.register((scope, _options, done) => {
    const typed = scope.withTypeProvider<TypeBoxTypeProvider>();
    const rejectOtherMethods = trackRoutes(typed);
    for (const addRoutes of allRoutes) addRoutes(typed, context);
    rejectOtherMethods();
    done();
  });
  return api;
}
