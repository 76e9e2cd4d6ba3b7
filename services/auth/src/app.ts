import { logGrpcLibrary } from '@tollgate/kit/grpc/library';
import { createHealth } from '@tollgate/kit/health';
import type { HttpServer } from '@tollgate/kit/http-server';
import { nameListenSettings } from '@tollgate/kit/http-server';
import {
  createLifecycle,
  createTermination,
  type Lifecycle,
  type LifecycleComponent,
} from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { type Settings, settingsSpec } from './config/settings.ts';
import type { Context } from './context.ts';
import { CleanupTimer } from './db/cleanup.ts';
import { connect, disconnect } from './db/connection.ts';
import { migrate } from './db/migrate.ts';
import { measureDatabase, traceDatabase } from './db/observability.ts';
import { Store } from './db/store.ts';
import { createAuthorizeRequest } from './ext-authz/decision.ts';
import type { IdentityStates } from './ext-authz/identity-cache.ts';
import { createIdentityStates } from './ext-authz/identity-cache.ts';
import { createIdentityListener } from './ext-authz/identity-listener.ts';
import {
  measureIdentityStates,
  measureRouteRules,
  traceAuthorization,
  traceIdentityStates,
} from './ext-authz/observability.ts';
import { defaultRules } from './ext-authz/route-rules.ts';
import { watchRouteRules } from './ext-authz/rules-file.ts';
import { createExtAuthzServers } from './ext-authz/server.ts';
import { createVerifiedTokens } from './ext-authz/token-cache.ts';
import type { OpenApiDocument } from './http/open-api.ts';
import { createApiServer } from './http/server.ts';
import { ColumnCipher } from './keys/column-encryption.ts';
import { openSigningKeys } from './keys/key-source.ts';
import { systemRandomness } from './keys/random.ts';
import { createBackground } from './messages/background.ts';
import { createMail } from './messages/mailer.ts';
import { createSmsGateway } from './messages/sms.ts';
import { Metrics } from './metrics.ts';
import { PasswordHasher } from './passwords/hasher.ts';
import { LeakedPasswords } from './passwords/leaked.ts';
import { GuessLimiter } from './sign-in/guess-limiter.ts';
import { startTelemetry } from './telemetry.ts';

/** What the service takes from the process. */
export interface AppDeps {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** What must be there before the service starts, and outlive it: the database of development mode. */
  readonly foundation?: LifecycleComponent;
}

/** TCP ports by what they serve; those of external authorization are absent when it is not served. */
interface Ports {
  http: number;
  extAuthzGrpc?: number;
  extAuthzHttp?: number;
}

/** The service, put together and not yet started. */
export interface App {
  readonly lifecycle: Lifecycle;
  /** Ports in use once started; those set to 0 were chosen by the system. */
  readonly ports: Ports;
  /** Takes another value of JWT_KEYS while it runs; answers false, and logs why, when it cannot be used. */
  replaceKeys(jwtKeys: string): boolean;
  /** Describes the API; also without a start. */
  openApi(): Promise<OpenApiDocument>;
}

/** Puts the service together: the one place that knows every part. */
export async function buildApp(settings: Settings, deps: AppDeps): Promise<App> {
  const { logger, nowMs, foundation } = deps;
  const lifecycle = createLifecycle({
    logger,
    drainTimeoutMs: settings.shutdownDelayMs + settings.drainTimeoutMs,
  });
  const ports: Ports = { http: settings.port };
  const health = createHealth();
  const startup = health.component('startup', { healthy: false });

  const signingKeys = await openSigningKeys(settings, { logger });
  const telemetry = await startTelemetry(settings, { logger, nowMs });
  const sql = connect(settings);
  const cipher = new ColumnCipher(settings);
  const metrics = new Metrics(telemetry.registry);
  let onUserChange: (userIds: readonly string[]) => void = () => undefined;
  const store = new Store(traceDatabase(measureDatabase(sql, telemetry.registry), telemetry.tracing), {
    cipher,
    dbSharedWithGotrue: settings.dbSharedWithGotrue,
    metrics,
    onUserChange: (userIds) => onUserChange(userIds),
  });
  const { mailer, mailbox, templates } = createMail(settings, {
    logger,
    nowMs,
    registry: telemetry.registry,
  });
  const background = createBackground({ logger });
  const context: Context = {
    settings,
    store,
    passwords: new PasswordHasher({ ...settings, cipher, metrics }),
    leakedPasswords: new LeakedPasswords(settings, { logger, nowMs }),
    guessLimiter: new GuessLimiter({ store, settings, logger }),
    keys: signingKeys.keys,
    random: systemRandomness,
    mailer,
    mailbox,
    background,
    sms: createSmsGateway(settings, { logger }),
    logger,
    nowMs,
    metrics,
  };
  const api = createApiServer(context, telemetry);

  // Started in this order and stopped in reverse.
  for (const component of telemetry.components) lifecycle.add(component);
  if (foundation) lifecycle.add(foundation);
  lifecycle.add(signingKeys.watch);
  lifecycle.add({
    name: 'schema',
    start: async ({ signal }) => {
      await migrate(settings, { logger, signal });
    },
  });
  lifecycle.add({ name: 'database connections', stop: () => disconnect(sql) });
  if (settings.dbCleanupEnabled) {
    lifecycle.add(new CleanupTimer(context));
  }
  lifecycle.add(templates);
  lifecycle.add({ name: 'background work', stop: ({ signal }) => background.close(signal) });
  lifecycle.add({
    name: 'HTTP server',
    start: async () => {
      ports.http = await nameListenSettings(api.start(), {
        host: settingsSpec.apiHost.env,
        port: settingsSpec.port.env,
      });
    },
    stop: ({ signal }) => api.stop(signal),
  });
  const httpServers: HttpServer[] = [api];
  if (settings.extAuthzEnabled) await addExtAuthz();
  lifecycle.add(createTermination(health, settings.shutdownDelayMs, httpServers));
  lifecycle.add({
    name: 'announcement',
    start() {
      startup.set(true);
      logger.info({ ...ports }, 'listening');
    },
  });
  return { lifecycle, ports, replaceKeys: signingKeys.replace, openApi: api.openApi };

  /** Everything of external authorization, in the order in which its parts start. */
  async function addExtAuthz(): Promise<void> {
    // Process-wide, like the library's log itself; before anything of it can have something to say.
    logGrpcLibrary(logger);
    const { extAuthzRoutesFile: file } = settings;
    const onAttempt = telemetry.registry && measureRouteRules(telemetry.registry);
    const rules =
      file === '' ? undefined : await watchRouteRules(file, { logger, ...(onAttempt && { onAttempt }) });
    const tokens = createVerifiedTokens();
    const { tracing } = telemetry;
    const currentRules = () => rules?.current() ?? defaultRules;
    const authorize = createAuthorizeRequest({
      rules: currentRules,
      verifyToken: (token, at) => tokens.verify(token, signingKeys.keys, at),
      states: settings.extAuthzSessionCheck ? traceIdentityStates(followIdentities(), tracing) : undefined,
      nowMs,
      logger,
      settings,
    });
    const servers = await createExtAuthzServers({
      authorize: traceAuthorization(authorize, { tracing, rules: currentRules }),
      health,
      logger,
      tracing,
      metrics: telemetry.registry,
      settings,
    });
    httpServers.push(servers.http);
    lifecycle.add({ name: 'rules of routes', stop: () => rules?.close() });
    lifecycle.add({ name: 'certificates of external authorization', stop: servers.close });
    lifecycle.add({
      name: 'external authorization over HTTP',
      start: async () => {
        ports.extAuthzHttp = await nameListenSettings(servers.http.start(), {
          host: settingsSpec.extAuthzHost.env,
          port: settingsSpec.extAuthzHttpPort.env,
        });
      },
      stop: ({ signal }) => servers.http.stop(signal),
    });
    lifecycle.add({
      name: 'external authorization over gRPC',
      start: async () => {
        ports.extAuthzGrpc = await nameListenSettings(servers.grpc.start(), {
          host: settingsSpec.extAuthzHost.env,
          port: settingsSpec.extAuthzGrpcPort.env,
        });
      },
      stop: ({ signal }) => servers.grpc.stop(signal),
    });
  }

  /** What is known of users and sessions, kept in step with the database. */
  function followIdentities(): IdentityStates {
    const states = createIdentityStates(
      { store: store.identityStates, nowMs },
      { maxStalenessMs: settings.extAuthzMaxStalenessMs },
    );
    onUserChange = states.invalidate;
    const listener = createIdentityListener({ ...settings, onChange: states.invalidate, logger });
    if (telemetry.registry) measureIdentityStates({ states, listener }, telemetry.registry);
    lifecycle.add(listener);
    return states;
  }
}
