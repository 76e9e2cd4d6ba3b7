import { createLifecycle, type Lifecycle, type LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { nameListenSettings } from '@tollgate/kit/name-listen-settings';
import { createBackground } from './background/background.ts';
import { createCleanupTimer } from './cleanup/cleanup-timer.ts';
import { createMail } from './mail/create-mail.ts';
import { createPasswordHasher } from './passwords/password-hasher.ts';
import { systemRandomness } from './random/system-randomness.ts';
import { type Settings, settingsSpec } from './settings/settings.ts';
import { createSmsGateway } from './sms/sms-gateways.ts';
import { connect, disconnect } from './store/postgres/connect.ts';
import { migrate } from './store/postgres/migrate.ts';
import { createPostgresStore } from './store/postgres/postgres-store.ts';
import { createApiServer } from './surfaces/http/api-server.ts';
import type { OpenApiDocument } from './surfaces/http/open-api/open-api.ts';
import { startTelemetry } from './telemetry/start-telemetry.ts';
import { openSigningKeys } from './tokens/signing-key-source.ts';
import { createRemoveExpired } from './use-cases/cleanup/remove-expired.ts';

/** What the service takes from the process. */
export interface AppDeps {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** What must be there before the service starts, and outlive it: the database of development mode. */
  readonly foundation?: LifecycleComponent;
}

/** The service, put together and not yet started. */
export interface App {
  readonly lifecycle: Lifecycle;
  /** Ports in use once started; those set to 0 were chosen by the system. */
  readonly ports: { http: number };
  /** Takes another value of JWT_KEYS while it runs; answers false, and logs why, when it cannot be used. */
  replaceKeys(jwtKeys: string): boolean;
  /** Describes the API; also without a start. */
  openApi(): Promise<OpenApiDocument>;
}

/** Puts the service together: the one place that knows every part. */
export async function buildApp(settings: Settings, deps: AppDeps): Promise<App> {
  const { logger, nowMs, foundation } = deps;
  const lifecycle = createLifecycle({ logger, drainTimeoutMs: settings.drainTimeoutMs });
  const ports = { http: settings.port };

  const signingKeys = await openSigningKeys(settings, { logger });
  const telemetry = await startTelemetry(settings, { logger, nowMs });
  const sql = connect(settings);
  const store = createPostgresStore(sql);
  const { mailer, mailbox } = createMail(settings, { logger, nowMs, registry: telemetry.registry });
  const background = createBackground({ logger });
  const api = createApiServer({
    settings,
    store,
    passwords: createPasswordHasher(),
    keys: signingKeys.keys,
    random: systemRandomness,
    mailer,
    mailbox,
    background,
    sms: createSmsGateway(settings, { logger }),
    logger,
    nowMs,
    tracing: telemetry.tracing,
    metrics: telemetry.registry,
  });

  // Started in this order and stopped in reverse.
  for (const component of telemetry.components) lifecycle.add(component);
  if (foundation) lifecycle.add(foundation);
  lifecycle.add(signingKeys.watch);
  lifecycle.add({
    name: 'schema',
    start: async () => {
      await migrate(settings, { logger });
    },
  });
  lifecycle.add({ name: 'database connections', stop: () => disconnect(sql) });
  if (settings.dbCleanupEnabled)
    lifecycle.add(
      createCleanupTimer({ removeExpired: createRemoveExpired({ store, settings }), logger, nowMs }),
    );
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
  lifecycle.add({ name: 'announcement', start: () => logger.info({ ...ports }, 'listening') });
  return { lifecycle, ports, replaceKeys: signingKeys.replace, openApi: api.openApi };
}
