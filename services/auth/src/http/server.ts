import { randomUUID } from 'node:crypto';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { createHttpServer, type HttpServer } from '@tollgate/kit/http-server';
import type { Tracing } from '@tollgate/kit/telemetry';
import { fastify } from 'fastify';
import type { Registry } from 'prom-client';
import {
  addAdminAuditRoutes,
  addAdminFactorRoutes,
  addAdminLinkRoutes,
  addAdminSessionRoutes,
} from '../admin/routes.ts';
import { addAdminUserRoutes } from '../admin/user-routes.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { addKeyRoutes } from '../keys/key-source.ts';
import { addMailboxRoutes } from '../messages/mailbox.ts';
import { addFactorRoutes } from '../mfa/routes.ts';
import { addLogoutRoutes, addSessionRoutes } from '../sessions/routes.ts';
import { addOtpRoutes } from '../sign-in/otp-routes.ts';
import { addDisabledRoutes } from '../sign-in/providers.ts';
import { addTokenRoutes } from '../sign-in/routes.ts';
import { addSignUpRoutes } from '../sign-up/routes.ts';
import { addUserRoutes } from '../users/routes.ts';
import { addVerifyRoutes } from '../verification/routes.ts';
import type { AddRoutes, Api } from './api.ts';
import { guardAdminRoutes } from './authenticate.ts';
import { addBodyParsers, bodyLimits } from './body.ts';
import { createErrorHandler } from './error-response.ts';
import { addAccessLog, addRequestMetrics, addTracing } from './observability.ts';
import { addOpenApi, addOpenApiRoutes, type OpenApiDocument, openApiDocument } from './open-api.ts';
import { addRequestLimits } from './rate-limits.ts';
import { addCors, addUrlRefusals, watchRoutes } from './request-guards.ts';
import { addForwardedForBound } from './request-metadata.ts';
import { addStatusRoutes } from './status.ts';

/** Every area of the API; a new one is a file and a line here. */
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
  addAdminAuditRoutes,
  addAdminFactorRoutes,
  addAdminSessionRoutes,
  addDisabledRoutes,
];

/** Ids of callers are taken over when they look like ids: they go to the log. */
const requestIdForm = /^[\w.:-]{1,128}$/;

/** Of all headers together. An access token has up to 15 KiB; what is beside it, cookies for example, must not make it unusable. */
const maxHeaderBytes = 32 * 1024;

/** What the API takes besides what its routes take. */
export interface ApiServerDeps extends Context {
  readonly tracing: Tracing;
  /** Absent for no metrics. */
  readonly metrics: Registry | undefined;
}

/** The REST API. */
export interface ApiServer extends HttpServer {
  /** Describes all routes. */
  openApi(): Promise<OpenApiDocument>;
}

/** Creates the REST API. */
export function createApiServer(deps: ApiServerDeps): ApiServer {
  const { settings } = deps;
  const api = createApi(deps);
  return {
    ...createHttpServer(api, { host: settings.apiHost, port: settings.port }),
    async openApi() {
      await api.ready();
      return openApiDocument(api);
    },
  };
}

function createApi(deps: ApiServerDeps): Api {
  const { settings, logger } = deps;
  const api: Api = fastify({
    bodyLimit: bodyLimits.small,
    http: { maxHeaderSize: maxHeaderBytes },
    requestTimeout: settings.maxRequestDurationMs,
    handlerTimeout: settings.maxRequestDurationMs,
    forceCloseConnections: 'idle',
    trustProxy: settings.trustedProxies.length > 0 ? [...settings.trustedProxies] : false,
    genReqId: ({ headers }) => inheritedId(headers[settings.requestIdHeader.toLowerCase()]) ?? randomUUID(),
    routerOptions: { ignoreTrailingSlash: true },
    // The client says what it means: a number is no text, and what a schema does not know is ignored.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  }).withTypeProvider<TypeBoxTypeProvider>();
  addForwardedForBound(api);
  // Before the others, so that what they refuse is seen as well.
  addTracing(api, deps.tracing);
  addRequestMetrics(api, deps.metrics);
  addCors(api, settings);
  addOpenApi(api, settings);
  addBodyParsers(api);
  addAccessLog(api, logger);
  // After the hooks of CORS, which are added once its plugin has loaded: without its headers a browser hides a refusal from the page.
  api.after(() => {
    addUrlRefusals(api);
    addRequestLimits(api, deps);
    guardAdminRoutes(api, deps);
  });
  api.setErrorHandler(createErrorHandler(logger));
  api.setNotFoundHandler(() => {
    throw errors.not_found();
  });
  // In a scope of its own, which starts once the plugins above are there.
  void api.register((scope, _options, done) => {
    const typed = scope.withTypeProvider<TypeBoxTypeProvider>();
    const refuseOtherMethods = watchRoutes(typed);
    for (const addRoutes of allRoutes) addRoutes(typed, deps);
    refuseOtherMethods();
    done();
  });
  return api;
}

function inheritedId(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && requestIdForm.test(header) ? header : undefined;
}
