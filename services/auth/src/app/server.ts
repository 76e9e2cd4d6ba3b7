import { AjvCompiler } from '@fastify/ajv-compiler';
import cors from '@fastify/cors';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { HttpServer } from '@tollgate/kit/http-server';
import type { Tracing } from '@tollgate/kit/telemetry';
import { compareText } from '@tollgate/kit/text';
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Registry } from 'prom-client';
import { addUserRoutes } from '../account/routes.ts';
import { addAdminApiKeyRoutes } from '../admin/api-key-routes.ts';
import { addAdminAuditRoutes } from '../admin/audit-routes.ts';
import { addCredentialRoutes } from '../admin/credential-routes.ts';
import { addExplainRoutes } from '../admin/explain-routes.ts';
import { addImportRoutes } from '../admin/import/routes.ts';
import { addAdminIssuerRoutes } from '../admin/issuer-routes.ts';
import {
  addAdminDomainRoutes,
  addAdminMemberRoutes,
  addAdminOrganizationRoutes,
} from '../admin/organization-routes.ts';
import {
  addAdminFactorRoutes,
  addAdminLinkRoutes,
  addAdminRecoveryRoutes,
  addAdminRedirectRoutes,
  addAdminSessionRoutes,
} from '../admin/routes.ts';
import { addSettingsRoutes, type SettingsParts } from '../admin/settings-routes.ts';
import { addAdminUserRoutes } from '../admin/user-routes.ts';
import { addApiKeyRoutes } from '../api-keys/routes.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { type AddRoutes, type Api, bodyLimits } from '../http/api.ts';
import { addBodyParsers } from '../http/body-parsers.ts';
import { answerClientError } from '../http/client-error.ts';
import { sendError } from '../http/error-response.ts';
import { addRequestMetrics, addTracing } from '../http/observability.ts';
import { addAccessLog, limitForwardedFor, requestIds } from '../http/request-metadata.ts';
import { addMailboxRoutes } from '../messages/mailbox.ts';
import { addRecoveryCodeRoutes } from '../mfa/recovery-code-routes.ts';
import { addFactorRoutes } from '../mfa/routes.ts';
import { addAuthorizationRoutes } from '../oauth/authorization-routes.ts';
import { addAuthorizeRoutes } from '../oauth/authorize.ts';
import { addClientEndpoints } from '../oauth/client-endpoints.ts';
import { addOAuthClientRoutes } from '../oauth/client-routes.ts';
import { addGrantRoutes } from '../oauth/grants.ts';
import { addEndSessionRoutes } from '../oauth/logout.ts';
import { addMetadataRoutes } from '../oauth/metadata.ts';
import { addRegistrationRoutes } from '../oauth/registration.ts';
import { addUserInfoRoutes } from '../oauth/userinfo.ts';
import { addOrganizationDomainRoutes } from '../organizations/domain-routes.ts';
import { addInvitationRoutes } from '../organizations/invitation-routes.ts';
import { addOrganizationKeyRoutes } from '../organizations/key-routes.ts';
import { addMemberRoutes, addOrganizationRoutes } from '../organizations/routes.ts';
import { isNavigation, sendErrorPage } from '../pages/error-page.ts';
import { addPageRoutes } from '../pages/routes.ts';
import { addPasskeyManagementRoutes, addPasskeyRoutes } from '../passkeys/routes.ts';
import { addCustomProviderRoutes } from '../providers/custom-routes.ts';
import { addIdentityRoutes } from '../providers/identities.ts';
import { addProviderRoutes, addSamlRoutes } from '../providers/routes.ts';
import { addLogoutRoutes, addSessionRoutes } from '../sessions/routes.ts';
import { addOtpRoutes, addTokenRoutes } from '../sign-in/routes.ts';
import { addSignUpRoutes } from '../sign-up/routes.ts';
import { addVerifyRoutes } from '../verification/routes.ts';
import { addEventRoutes } from '../webhooks/routes.ts';
import { addWebhookRoutes } from '../webhooks/webhook-routes.ts';
import type { Context } from './context.ts';
import { addKeyRoutes } from './key-routes.ts';
import { addOpenApi, addOpenApiRoutes, type OpenApiDocument, openApiDocument } from './open-api.ts';
import { addDeadline, addUrlChecks, guardRoutes } from './request-guards.ts';
import { addStatusRoutes } from './status.ts';

/** The context of routes. Commands have no start to report. */
type ServerContext = Context & SettingsParts;

const allRoutes: readonly AddRoutes<ServerContext>[] = [
  addStatusRoutes,
  addKeyRoutes,
  addMetadataRoutes,
  addOpenApiRoutes,
  addSignUpRoutes,
  addMailboxRoutes,
  addTokenRoutes,
  addOtpRoutes,
  addVerifyRoutes,
  addUserRoutes,
  addSessionRoutes,
  addLogoutRoutes,
  addApiKeyRoutes,
  addFactorRoutes,
  addPasskeyRoutes,
  addPasskeyManagementRoutes,
  addRecoveryCodeRoutes,
  addOrganizationRoutes,
  addMemberRoutes,
  addInvitationRoutes,
  addOrganizationDomainRoutes,
  addOrganizationKeyRoutes,
  addAdminUserRoutes,
  addImportRoutes,
  addAdminLinkRoutes,
  addAdminRedirectRoutes,
  addAdminAuditRoutes,
  addAdminApiKeyRoutes,
  addCredentialRoutes,
  addExplainRoutes,
  addAdminIssuerRoutes,
  addSettingsRoutes,
  addEventRoutes,
  addWebhookRoutes,
  addAdminFactorRoutes,
  addAdminRecoveryRoutes,
  addAdminSessionRoutes,
  addAdminOrganizationRoutes,
  addAdminMemberRoutes,
  addAdminDomainRoutes,
  addProviderRoutes,
  addCustomProviderRoutes,
  addIdentityRoutes,
  addOAuthClientRoutes,
  addClientEndpoints,
  addRegistrationRoutes,
  addAuthorizeRoutes,
  addEndSessionRoutes,
  addAuthorizationRoutes,
  addGrantRoutes,
  addUserInfoRoutes,
  addPageRoutes,
  addSamlRoutes,
];

/** Caches validators by schema: schemas are constants, and tests start many servers. */
const buildCompiler = AjvCompiler();

/**
 * Compiles a schema when its first request comes: to compile those of all routes takes an eighth of
 * the CPU time of a start.
 */
const buildValidator: typeof buildCompiler = (externalSchemas, options) => {
  const compile = buildCompiler(externalSchemas, options);
  type Validator = ReturnType<typeof compile>;
  return (route) => {
    let compiled: Validator | undefined;
    const validate: Pick<Validator, 'errors'> & ((data: unknown) => boolean | Promise<unknown>) = (data) => {
      compiled ??= compile(route);
      const result = compiled(data);
      validate.errors = compiled.errors ?? null;
      return result;
    };
    // Fastify calls it and reads its errors: it uses nothing else of a validator.
    return validate as Validator;
  };
};

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

  constructor(context: ServerContext, observability: Observability, buffers?: ClientBuffers) {
    const { settings } = context;
    const api = createApi(context, observability);
    super(api, { host: settings.apiHost, port: settings.port }, { buffers });
    this.#api = api;
  }

  async openApi(): Promise<OpenApiDocument> {
    await this.#api.ready();
    return openApiDocument(this.#api);
  }
}

function createApi(context: ServerContext, { tracing, registry }: Observability): Api {
  const { settings, logger } = context;
  const api: Api = fastify({
    bodyLimit: bodyLimits.small,
    http: { maxHeaderSize: maxHeaderBytes },
    requestTimeout: settings.maxRequestDurationMs,
    forceCloseConnections: 'idle',
    trustProxy: settings.trustedProxies.length > 0 ? [...settings.trustedProxies] : false,
    genReqId: requestIds(settings),
    routerOptions: { ignoreTrailingSlash: true },
    clientErrorHandler: answerClientError,
    // No type coercion; unknown members are ignored.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
    schemaController: { compilersFactory: { buildValidator } },
  }).withTypeProvider<TypeBoxTypeProvider>();
  limitForwardedFor(api);
  // These hooks precede the others, so that the requests they reject are recorded.
  addTracing(api, tracing);
  addRequestMetrics(api, registry);
  addCors(api, settings);
  addOpenApi(api, settings);
  addDeadline(api, settings);
  addBodyParsers(api);
  addAccessLog(api, logger);
  // After the CORS plugin has added its hooks: browsers hide a response without CORS headers.
  api.after(() => {
    addUrlChecks(api);
    guardRoutes(api, context);
  });
  const showError = sendErrorPage(context);
  api.setErrorHandler((thrown, request, reply) =>
    isNavigation(request) ? showError(thrown, request, reply) : sendError(thrown, { request, reply, logger }),
  );
  api.setNotFoundHandler(() => {
    throw errors.not_found();
  });
  // A separate scope starts once the plugins above have loaded.
  void api.register((scope, _options, done) => {
    const typed = scope.withTypeProvider<TypeBoxTypeProvider>();
    const rejectOtherMethods = trackRoutes(typed);
    for (const addRoutes of allRoutes) addRoutes(typed, context);
    rejectOtherMethods();
    done();
  });
  return api;
}

const allowedHeaders = [
  'Accept',
  'Authorization',
  'Content-Type',
  'X-Client-IP',
  'X-Client-Info',
  'X-JWT-AUD',
  'x-use-cookie',
  'apikey',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
  'X-Svc-Session-Tag',
  'DPoP',
];
const exposedHeaders = [
  'X-Total-Count',
  'Link',
  'Retry-After',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
  'DPoP-Nonce',
  'WWW-Authenticate',
];

/** The longest time for which Chromium caches a preflight response. */
const preflightMaxAgeSeconds = 7_200;

/** Allows all origins: callers are authenticated by tokens, not by cookies. */
function addCors(api: Api, { corsAllowedHeaders }: Pick<Settings, 'corsAllowedHeaders'>): void {
  void api.register(cors, {
    origin: '*',
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [...allowedHeaders, ...corsAllowedHeaders],
    exposedHeaders,
    credentials: true,
    strictPreflight: false,
    maxAge: preflightMaxAgeSeconds,
  });
}

/** Methods that get a 405 if the path does not support them. OPTIONS is left to CORS. */
const methods = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'];

/**
 * Records the routes that are added from now on. The returned function must be called after the
 * last one; it adds routes that reject other methods with 405 and `Allow`.
 *
 * @see RFC 9110 §15.5.6 https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6
 */
function trackRoutes(api: Api): () => void {
  const known = new Map<string, Set<string>>();
  let watching = true;
  api.addHook('onRoute', ({ url, method }) => {
    if (!watching) return;
    const allowed = known.get(url) ?? new Set<string>();
    known.set(url, allowed);
    for (const one of [method].flat()) allowed.add(one);
  });
  return () => {
    watching = false;
    for (const [url, allowed] of known) {
      const rejected = methods.filter((method) => !allowed.has(method));
      if (rejected.length === 0) continue;
      const reject = rejectMethod([...allowed].toSorted(compareText));
      api.route({
        url,
        method: rejected,
        exposeHeadRoute: false,
        schema: { hide: true },
        // Rejects before the body is read.
        onRequest: reject,
        handler: reject,
      });
    }
  };
}

function rejectMethod(allowed: readonly string[]) {
  return async (_request: FastifyRequest, reply: FastifyReply): Promise<never> => {
    reply.header('allow', allowed.join(', '));
    throw errors.method_not_allowed();
  };
}
