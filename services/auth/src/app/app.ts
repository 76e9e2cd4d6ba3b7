import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { createClientBuffers } from '@tollgate/kit/client-buffers';
import { logGrpcLibrary } from '@tollgate/kit/grpc/library';
import { Health } from '@tollgate/kit/health';
import { type HttpServer, nameListenSettings } from '@tollgate/kit/http-server';
import { createTermination, Lifecycle, type LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { TlsMetrics } from '@tollgate/kit/metrics';
import { scheduleByTimer } from '@tollgate/kit/time';
import type { Sql } from 'postgres';
import { ApiKeyCache } from '../api-keys/key-cache.ts';
import { KeyUsage } from '../api-keys/key-usage.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { connect, disconnect } from '../db/connection.ts';
import { IndexBuilder } from '../db/index-builder.ts';
import { migrate } from '../db/migrate.ts';
import { measureDatabase, traceDatabase } from '../db/observability.ts';
import type { ChangedIds } from '../db/state-reads.ts';
import { noHeaders } from '../ext-authz/codec.ts';
import { Authorizer } from '../ext-authz/decision.ts';
import { CheckExplainer } from '../ext-authz/explain.ts';
import { IdentityCache, type IdentityCacheStats } from '../ext-authz/identity-cache.ts';
import type { KnownCaller } from '../ext-authz/identity-headers.ts';
import { IdentityListener } from '../ext-authz/identity-listener.ts';
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
import { createDefaultRules, toDefaultAccess } from '../ext-authz/route-rules.ts';
import { logRuleWarnings, RulesFile } from '../ext-authz/rules-file.ts';
import { createExtAuthzServers, type ExtAuthzServers } from '../ext-authz/server.ts';
import { HookCaller } from '../hooks/caller.ts';
import { loadKeys } from '../issuers/discovery.ts';
import { TokenIntrospection } from '../issuers/introspection.ts';
import { Issuers } from '../issuers/issuers.ts';
import { clusterAccess } from '../issuers/kubernetes.ts';
import { IssuerMetrics } from '../issuers/metrics.ts';
import { issuerUrl, TokenCache, tokenIssuer } from '../keys/jwt.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import { ColumnCipher, systemRandomness } from '../keys/secrets.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { Limiter } from '../limits/limiter.ts';
import { AdminKeyLimit } from '../limits/wrong-keys.ts';
import { createMailer } from '../messages/mailer.ts';
import { createSmsGateway } from '../messages/sms.ts';
import { Metrics } from '../metrics.ts';
import { LeakedPasswords } from '../passwords/leaked-passwords.ts';
import { PasswordHasher } from '../passwords/passwords.ts';
import { ProviderConnections } from '../providers/connections.ts';
import { startTelemetry, type Telemetry } from '../telemetry.ts';
import { EventDeliveries } from '../webhooks/deliveries.ts';
import { Background } from '../work-queue.ts';
import { CleanupTimer } from './cleanup.ts';
import type { Context } from './context.ts';
import type { OpenApiDocument } from './open-api.ts';
import { ApiServer } from './server.ts';
import { Store } from './store.ts';

export interface AppOptions {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Started first and stopped last: the database of development mode. */
  readonly foundation?: LifecycleComponent;
}

/** TCP ports. Those of ext_authz are undefined if it is disabled. */
interface Ports {
  http: number;
  extAuthzGrpc?: number;
  extAuthzHttp?: number;
}

/** The service, not started yet. */
export interface App {
  readonly lifecycle: Lifecycle;
  /** Ports once started; a port of 0 is replaced by the one that the system chose. */
  readonly ports: Ports;
  /** Replaces JWT_KEYS. Logs an error and returns false if the new value is invalid. */
  replaceKeys(jwtKeys: string): boolean;
  /** Works without a start. */
  openApi(): Promise<OpenApiDocument>;
}

/** Composes the service. */
export async function buildApp(settings: Settings, options: AppOptions): Promise<App> {
  const { logger, foundation } = options;
  const ports: Ports = { http: settings.port };
  const health = new Health();
  const startup = health.component('startup', { healthy: false });
  const signingKeys = await SigningKeySource.open(settings, { logger });
  const telemetry = await startTelemetry(settings, options);
  const sql = connect({ ...settings, logger });
  const parts = createContext(settings, options, { sql, telemetry, keys: signingKeys.keys });
  const { context } = parts;
  const buffers = createClientBuffers({
    maxBytes: settings.clientBufferMaxBytes,
    logger,
    onShed: (protocol) => context.metrics.clientBuffersRefused.inc({ protocol }),
  });
  context.metrics.exportClientBuffers(buffers);
  const api = new ApiServer(context, telemetry, buffers);
  const extAuthz = settings.extAuthzEnabled
    ? await createExtAuthz(context, { caches: parts.caches, telemetry, health, buffers, ports })
    : undefined;

  // Started in this order, and stopped in reverse.
  const components: readonly (LifecycleComponent | undefined)[] = [
    ...telemetry.components,
    foundation,
    signingKeys,
    {
      name: 'schema',
      start: async ({ signal }) => {
        await migrate(settings, { logger, signal });
      },
    },
    { name: 'database connections', stop: () => disconnect(sql) },
    settings.oauthServerEnabled
      ? { name: 'tables of the OAuth server', start: () => context.store.oauthClients.requireTables() }
      : undefined,
    new IndexBuilder({ ...settings, store: context.store, logger }),
    settings.dbCleanupEnabled ? new CleanupTimer(context) : undefined,
    settings.eventWebhookUri === '' && !settings.eventWebhooksEnabled
      ? undefined
      : new EventDeliveries(context),
    parts.templates,
    { name: 'background work', stop: ({ signal }) => context.background.close(signal) },
    {
      name: 'HTTP server',
      start: async () => {
        const names = { host: settingsSpec.apiHost.env, port: settingsSpec.port.env };
        ports.http = await nameListenSettings(api.start(), names);
      },
      stop: ({ signal }) => api.stop(signal),
    },
    ...(extAuthz?.components ?? []),
    createTermination(health, settings.shutdownDelayMs, extAuthz ? [api, extAuthz.http] : [api]),
    {
      name: 'ready',
      start() {
        startup.set(true);
        logger.info({ ...ports }, 'listening');
      },
    },
  ];
  const drainTimeoutMs = settings.shutdownDelayMs + settings.drainTimeoutMs;
  const lifecycle = new Lifecycle({ logger, drainTimeoutMs });
  for (const component of components) if (component !== undefined) lifecycle.add(component);
  return {
    lifecycle,
    ports,
    replaceKeys: (jwtKeys) => signingKeys.replace(jwtKeys),
    openApi: () => api.openApi(),
  };
}

/** The context, and the parts of it that have a life of their own. */
export function createContext(
  settings: Settings,
  { logger, nowMs }: Pick<AppOptions, 'logger' | 'nowMs'>,
  resources: {
    readonly sql: Sql;
    readonly telemetry: Pick<Telemetry, 'registry' | 'tracing'>;
    readonly keys: SigningKeys;
  },
) {
  const { sql, telemetry, keys } = resources;
  const { registry, tracing } = telemetry;
  const cipher = new ColumnCipher(settings);
  const metrics = new Metrics(registry);
  const database = traceDatabase(measureDatabase(sql, registry), tracing);
  const store: Store = new Store(database, {
    cipher,
    dbSharedWithGotrue: settings.dbSharedWithGotrue,
    metrics,
    onIdentityChange: (ids) => caches?.invalidate(ids),
  });
  const caches = settings.extAuthzEnabled ? createCaches(store, settings, nowMs) : undefined;
  const { mailer, mailbox, templates } = createMailer(settings, { metrics, logger, nowMs });
  const background = new Background(logger);
  const explain: Context['explain'] = { current: undefined };
  const context = {
    settings,
    store,
    passwords: new PasswordHasher({ ...settings, cipher, metrics }),
    leakedPasswords: new LeakedPasswords(settings, { logger, nowMs }),
    limiter: new Limiter({ store, settings, logger, metrics, nowMs }),
    adminKeyLimit: new AdminKeyLimit({ settings, metrics, nowMs }),
    keys,
    providers: new ProviderConnections(settings, { store, nowMs }),
    tokens: new TokenCache(),
    random: systemRandomness,
    mailer,
    mailbox,
    background,
    sms: createSmsGateway(settings, { logger }),
    hooks: new HookCaller({ settings, sql: database, random: systemRandomness, metrics, logger, nowMs }),
    explain,
    metrics,
    logger,
    nowMs,
  } satisfies Context;
  return { context, caches, templates };
}

/** Caches of ext_authz, which changes of users, clients and API keys invalidate. */
function createCaches(store: Store, settings: Settings, nowMs: () => number) {
  const options = { nowMs, maxStalenessMs: settings.extAuthzMaxStalenessMs };
  const checksState = settings.extAuthzSessionCheck;
  const caches = {
    /** Undefined: tokens are trusted until they expire. */
    identities: checksState ? new IdentityCache({ store: store.identityStates, ...options }) : undefined,
    clients: checksState ? new IdentityCache({ store: store.clientStates, ...options }) : undefined,
    apiKeys: settings.apiKeysEnabled ? new ApiKeyCache({ store: store.apiKeyStates, ...options }) : undefined,
  };
  const invalidate = (changed: ChangedIds): void => {
    for (const cache of Object.values(caches)) cache?.invalidate(changed);
  };
  return { ...caches, invalidate };
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

interface ExtAuthzParts {
  readonly caches: ReturnType<typeof createCaches> | undefined;
  readonly telemetry: Telemetry;
  readonly health: Health;
  readonly buffers: ClientBuffers;
  /** Set when the servers start. */
  readonly ports: Ports;
}

/** The servers of ext_authz, as components in the order of their start. */
async function createExtAuthz(
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
  const { oauthServerEnabled: hasClients } = settings;
  const issuers = createIssuers(context, registry);
  const defaultAccess = toDefaultAccess(settings.extAuthzDefaultAccess);
  const rulesFile =
    settings.extAuthzRoutesFile === ''
      ? undefined
      : await RulesFile.open(settings.extAuthzRoutesFile, {
          logger,
          canLimit,
          hasClients,
          hasApiKeys: settings.apiKeysEnabled,
          tokenIssuer: tokenIssuer(settings),
          hasOrganizations: settings.organizationsEnabled,
          defaultAccess,
          onLoad: (succeeded) => metrics?.recordLoad(succeeded),
          onRules: (loaded) => issuers.replace(trustIssuers(loaded.issuers, settings)),
        });
  const rules = rulesFile ?? { current: createDefaultRules(defaultAccess) };
  if (rulesFile === undefined) logRuleWarnings(rules.current, { logger, canLimit, hasClients });
  const usage =
    caches?.apiKeys && new KeyUsage({ store: context.store.apiKeys, schedule: scheduleByTimer, logger });
  const rateLimiter = canLimit
    ? await RateLimiter.open({ settings, logger, tracing, tlsMetrics, metrics: limitMetrics })
    : undefined;
  const policies =
    settings.extAuthzPolicyServer === ''
      ? undefined
      : await PolicySource.open({
          settings,
          logger,
          health: health.component('access policies', { healthy: false }),
          metrics: registry && new PolicyMetrics(registry),
          tlsMetrics,
        });
  const checks = {
    rules,
    policies,
    rateLimiter,
    tokens,
    keys,
    issuers,
    identities: caches?.identities,
    clients: caches?.clients,
    apiKeys: usage && createKeyContext(context, { cache: caches?.apiKeys, usage, registry }),
    tracing: tracing.enabled ? tracing : undefined,
    nowMs,
    logger,
    settings,
  };
  context.explain.current = new CheckExplainer({ ...checks, keySettings: settings, store: context.store });
  const authorizer = observeChecks(new Authorizer(checks), { logger, registry, tracing, rules, policies });
  const servers = await createExtAuthzServers({
    authorizer,
    resources: new ResourceMetadata({ rules, policies, issuer: issuerUrl(settings) }),
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
  }: { cache: ApiKeyCache | undefined; usage: KeyUsage; registry: Telemetry['registry'] },
): KeyContext | undefined {
  return cache && { cache, usage, metrics: registry && new KeyMetrics(cache, registry), settings, nowMs };
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

function listeners({ http, grpc }: ExtAuthzServers, ports: Ports): readonly LifecycleComponent[] {
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
