import { createClientBuffers } from '@tollgate/kit/client-buffers';
import { Health } from '@tollgate/kit/health';
import { nameListenSettings } from '@tollgate/kit/http-server';
import { createTermination, Lifecycle, type LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { StartReport } from '@tollgate/kit/start-report';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { connect, disconnect } from '../db/connection.ts';
import { IndexBuilder } from '../db/index-builder.ts';
import { migrate } from '../db/migrate.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import { applyFirstPartyClients } from '../oauth/first-party.ts';
import { startTelemetry } from '../telemetry.ts';
import { EventDeliveries } from '../webhooks/deliveries.ts';
import { CleanupTimer } from './cleanup.ts';
import { createContext } from './create-context.ts';
import { createExtAuthz, type ExtAuthzPorts } from './ext-authz.ts';
import type { OpenApiDocument } from './open-api.ts';
import { ApiServer } from './server.ts';

export interface AppOptions {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly report: StartReport;
  /** Started first and stopped last: the database of development mode. */
  readonly foundation?: LifecycleComponent;
}

/** TCP ports. Those of ext_authz are undefined if it is disabled. */
interface Ports extends ExtAuthzPorts {
  http: number;
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
  const api = new ApiServer({ ...context, report: options.report, signingKeys }, telemetry, buffers);
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
      ? {
          name: 'clients of the OAuth server',
          start: async () => {
            await context.store.oauthClients.requireTables();
            await applyFirstPartyClients(context);
          },
        }
      : undefined,
    new IndexBuilder({ ...settings, store: context.store, logger }),
    settings.dbCleanupEnabled ? new CleanupTimer(context) : undefined,
    EventDeliveries.isNeeded(context) ? new EventDeliveries(context) : undefined,
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
    options.report,
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
