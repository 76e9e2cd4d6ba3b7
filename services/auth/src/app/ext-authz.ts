import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { logGrpcLibrary } from '@tollgate/kit/grpc/library';
import type { Health } from '@tollgate/kit/health';
import { type HttpServer, nameListenSettings } from '@tollgate/kit/http-server';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { TlsMetrics } from '@tollgate/kit/metrics';
import { scheduleByTimer } from '@tollgate/kit/time';
import { createDefaultRules } from '@tollgate/policies/routes-file/route-rules';
import { buildExplainServer } from '../admin/explain-server.ts';
import type { ApiKeyCache } from '../api-keys/key-cache.ts';
import { settingsSpec } from '../config/settings.ts';
import { Usage, usePrecisionMs } from '../db/usage.ts';
import { DpopProofs } from '../dpop/proofs.ts';
import { Browsers } from '../ext-authz/browsers.ts';
import { noHeaders } from '../ext-authz/codec.ts';
import { Authorizer } from '../ext-authz/decision.ts';
import { CheckExplainer } from '../ext-authz/explain.ts';
import type { IdentityCacheStats } from '../ext-authz/identity-cache.ts';
import type { KnownCaller } from '../ext-authz/identity-headers.ts';
import { IdentityListener } from '../ext-authz/identity-listener.ts';
import { IssuerReport } from '../ext-authz/issuer-report.ts';
import { trustIssuers } from '../ext-authz/issuer-rules.ts';
import { type KeyContext, withKeyHeaders } from '../ext-authz/key-identifier.ts';
import {
  exportIdentityMetrics,
  KeyMetrics,
  observeChecks,
  PolicyMetrics,
  RateLimitMetrics,
  RouteRulesMetrics,
} from '../ext-authz/observability.ts';
import { PolicySource } from '../ext-authz/policy-source.ts';
import { RateLimiter } from '../ext-authz/rate-limiter.ts';
import { ResourceMetadata } from '../ext-authz/resource-metadata.ts';
import { logRuleWarnings, RulesFile, toDefaultAccess } from '../ext-authz/rules-file.ts';
import { createExtAuthzServers, type ExtAuthzServers } from '../ext-authz/server.ts';
import { loadKeys } from '../issuers/discovery.ts';
import { TokenIntrospection } from '../issuers/introspection.ts';
import { Issuers } from '../issuers/issuers.ts';
import { clusterAccess } from '../issuers/kubernetes.ts';
import { IssuerMetrics } from '../issuers/metrics.ts';
import { issuerUrl, tokenIssuer } from '../keys/jwt.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Context } from './context.ts';
import type { Caches } from './create-context.ts';

/** TCP ports, which the servers set when they start. */
export interface ExtAuthzPorts {
  extAuthzGrpc?: number;
  extAuthzHttp?: number;
  extAuthzAdmin?: number;
}

interface ExtAuthzParts {
  readonly caches: Caches;
  readonly telemetry: Telemetry;
  readonly health: Health;
  readonly buffers: ClientBuffers;
  readonly ports: ExtAuthzPorts;
}

/** The servers of ext_authz, as components in the order of their start. */
export async function createExtAuthz(
  context: Context,
  { caches, telemetry, health, buffers, ports }: ExtAuthzParts,
): Promise<{ readonly http: HttpServer; readonly components: readonly LifecycleComponent[] }> {
  const { settings, logger, tokens, keys, nowMs } = context;
  const { tracing, registry } = telemetry;
  // Process-wide; must precede the first use of the library.
  logGrpcLibrary(logger);
  const metrics = registry && new RouteRulesMetrics(registry);
  const tlsMetrics = registry && new TlsMetrics(registry);
  const limitMetrics = registry && new RateLimitMetrics(registry);
  const canLimit = settings.extAuthzRateLimitAddress !== '';
  const hasPolicies = settings.extAuthzPolicyServer !== '';
  const { oauthServerEnabled: hasClients } = settings;
  const issuers = createIssuers(context, registry);
  context.issuers.current = issuers;
  const defaultAccess = toDefaultAccess(settings.extAuthzDefaultAccess);
  const rulesFile =
    settings.extAuthzRoutesFile === ''
      ? undefined
      : await RulesFile.open(settings.extAuthzRoutesFile, {
          logger,
          canLimit,
          hasPolicies,
          hasClients,
          hasApiKeys: settings.apiKeysEnabled,
          tokenIssuer: tokenIssuer(settings),
          hasOrganizations: settings.organizationsEnabled,
          defaultAccess,
          onLoad: (succeeded) => metrics?.recordLoad(succeeded),
          onRules: (loaded) => issuers.replace(trustIssuers(loaded.issuers, settings)),
        });
  const rules = rulesFile ?? { current: createDefaultRules(defaultAccess) };
  const file = rulesFile && settings.extAuthzRoutesFile;
  context.issuerReport.current = new IssuerReport({ file, rules, issuers });
  if (rulesFile === undefined) logRuleWarnings(rules.current, { logger, canLimit, hasPolicies, hasClients });
  const usage =
    caches?.apiKeys &&
    new Usage('API keys', { store: context.store.apiKeys, schedule: scheduleByTimer, logger });
  const browserUsage = caches?.browserSessions && createBrowserUsage(context);
  const rateLimiter = canLimit
    ? await RateLimiter.open({ settings, logger, tracing, tlsMetrics, metrics: limitMetrics })
    : undefined;
  const policies = !hasPolicies
    ? undefined
    : await PolicySource.open({
        settings,
        logger,
        canSignIn: caches?.browserSessions !== undefined,
        health: health.component('access policies', { healthy: false }),
        metrics: registry && new PolicyMetrics(registry),
        tlsMetrics,
      });
  const checks = {
    rules,
    policies,
    rateLimiter,
    proofs: new DpopProofs({ store: context.store, settings, nowMs, verifier: 'gateway' }),
    tokens,
    keys,
    issuers,
    identities: caches?.identities,
    clients: caches?.clients,
    apiKeys: usage && createKeyContext(context, { cache: caches?.apiKeys, usage, registry }),
    browserSessions: caches?.browserSessions,
    browserUsage,
    browsers: caches?.browserSessions && new Browsers(context),
    tracing: tracing.enabled ? tracing : undefined,
    nowMs,
    logger,
    settings,
  };
  const resources = new ResourceMetadata({ rules, policies, issuer: issuerUrl(settings) });
  const explainer = new CheckExplainer({
    ...{ ...checks, resources, keySettings: settings, store: context.store },
  });
  context.explain.current = explainer;
  const authorizer = observeChecks(new Authorizer(checks), { logger, registry, tracing, rules, policies });
  const servers = await createExtAuthzServers({
    authorizer,
    resources,
    wantedHeaders: withKeyHeaders(settings, () => policies?.current?.headers ?? noHeaders),
    wantsRoute: () => policies?.current?.hasRoutes === true,
    health,
    logger,
    tracing,
    tlsMetrics,
    buffers,
    settings,
  });
  const listener =
    (caches?.identities ?? caches?.apiKeys) &&
    new IdentityListener({ ...settings, onChange: (changed) => caches?.invalidate(changed), logger });
  const { identities, clients } = caches ?? {};
  if (identities && clients && listener && registry)
    exportIdentityMetrics({ stats: () => addStats(identities.stats(), clients.stats()) }, listener, registry);
  return {
    http: servers.http,
    components: [
      ...(listener ? [listener] : []),
      ...(usage ? [usage] : []),
      ...(browserUsage ? [browserUsage] : []),
      { name: 'route rules', stop: () => rulesFile?.close() },
      { name: 'access policies', start: () => policies?.start(), stop: () => policies?.close() },
      issuers,
      {
        name: 'connections to the rate limit service',
        start: () => rateLimiter?.start(),
        stop: () => rateLimiter?.close(),
      },
      { name: 'ext_authz certificates', stop: () => servers.close() },
      ...listeners(servers, ports),
      ...(settings.extAuthzAdminPort === 0 ? [] : [explainListener(context, explainer, ports)]),
    ],
  };
}

/** API keys of ext_authz. Undefined: they are not accepted. */
function createKeyContext(
  { settings, nowMs }: Context,
  {
    cache,
    usage,
    registry,
  }: { cache: ApiKeyCache | undefined; usage: Usage; registry: Telemetry['registry'] },
): KeyContext | undefined {
  return cache && { cache, usage, metrics: registry && new KeyMetrics(cache, registry), settings, nowMs };
}

/** Undefined: sessions do not end by inactivity. */
function createBrowserUsage({ settings, store, logger }: Context): Usage | undefined {
  const { sessionInactivityTimeoutMs: timeoutMs } = settings;
  if (timeoutMs === 0) return undefined;
  // Several times within the timeout, so that it does not end a session that is in use.
  const precisionMs = Math.min(usePrecisionMs, timeoutMs / 4);
  return new Usage('browser sessions', {
    ...{ store: store.browserSessions, schedule: scheduleByTimer, precisionMs, logger },
  });
}

/** Other issuers, without any until the routes file names them. */
function createIssuers(
  { settings, logger, nowMs }: Context,
  registry: Telemetry['registry'],
): Issuers<KnownCaller> {
  const { extAuthzIssuerPrivateHosts: privateHosts } = settings;
  const cluster = clusterAccess(settings);
  return new Issuers({
    load: (definition) => loadKeys(definition, { privateHosts, cluster }),
    introspection: new TokenIntrospection({ privateHosts, nowMs, logger }),
    schedule: scheduleByTimer,
    metrics: registry && new IssuerMetrics(registry),
    nowMs,
    logger,
  });
}

function listeners({ http, grpc }: ExtAuthzServers, ports: ExtAuthzPorts): readonly LifecycleComponent[] {
  const host = settingsSpec.extAuthzHost.env;
  return [
    {
      name: 'ext_authz HTTP server',
      start: async () => {
        const port = settingsSpec.extAuthzHttpPort.env;
        ports.extAuthzHttp = await nameListenSettings(http.start(), { host, port });
      },
      stop: ({ signal }) => http.stop(signal),
    },
    {
      name: 'ext_authz gRPC server',
      start: async () => {
        const port = settingsSpec.extAuthzGrpcPort.env;
        ports.extAuthzGrpc = await nameListenSettings(grpc.start(), { host, port });
      },
      stop: ({ signal }) => grpc.stop(signal),
    },
  ];
}

function explainListener(
  { settings, logger }: Context,
  explainer: CheckExplainer,
  ports: ExtAuthzPorts,
): LifecycleComponent {
  const server = buildExplainServer({ explainer, logger, port: settings.extAuthzAdminPort });
  return {
    name: 'explain page',
    start: async () => {
      const port = settingsSpec.extAuthzAdminPort.env;
      ports.extAuthzAdmin = await nameListenSettings(server.start(), { host: '127.0.0.1', port });
    },
    stop: ({ signal }) => server.stop(signal),
  };
}

/** Statistics of both caches, which receive all invalidations. */
function addStats(users: IdentityCacheStats, machines: IdentityCacheStats): IdentityCacheStats {
  return {
    ...users,
    hits: users.hits + machines.hits,
    misses: users.misses + machines.misses,
    joins: users.joins + machines.joins,
    entries: users.entries + machines.entries,
  };
}
