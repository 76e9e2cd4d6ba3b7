import { Health } from '@tollgate/kit/health';
import { nameListenSettings } from '@tollgate/kit/http-server';
import { createTermination, Lifecycle } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { addProcessMetrics } from '@tollgate/kit/metrics';
import type { StartReport } from '@tollgate/kit/start-report';
import { Registry } from 'prom-client';
import { type Settings, settingsSpec } from './config/settings.ts';
import type { Context } from './context.ts';
import { buildAdminServer, buildServer } from './http/server.ts';
import { Live } from './live/live.ts';
import { registerMetrics } from './metrics.ts';
import { areas } from './pages/registry.ts';
import { Outages } from './services/outages.ts';
import { SignInFlow } from './sign-in/flow.ts';
import { Sessions } from './sign-in/sessions.ts';
import { Assets } from './ui/assets.ts';

/** The service, before it is started. */
export interface App {
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  /** Ports in use once started; those set to 0 are chosen by the system. */
  readonly ports: { http: number; admin: number };
}

/** Composes the service. */
export async function buildApp(
  settings: Settings,
  {
    logger,
    nowMs,
    report,
  }: { readonly logger: Logger; readonly nowMs: () => number; readonly report: StartReport },
): Promise<App> {
  const registry = new Registry();
  addProcessMetrics(registry);
  const health = new Health();
  const sessions = new Sessions(settings, nowMs);
  const context: Context = {
    ...{ settings, logger, nowMs, sessions, report },
    metrics: registerMetrics(registry, { countSessions: () => sessions.size }),
    signIn: new SignInFlow(settings, nowMs),
    outages: new Outages(nowMs),
    live: new Live(settings, nowMs),
    assets: await Assets.load(),
    menu: areas,
  };
  const server = buildServer(context, areas, { host: settings.host, port: settings.port });
  const admin = buildAdminServer(
    { registry, health },
    { host: settings.adminHost, port: settings.adminPort },
  );
  const ports = { http: settings.port, admin: settings.adminPort };
  const drainTimeoutMs = settings.shutdownDelayMs + settings.drainTimeoutMs;
  const lifecycle = new Lifecycle({ logger, drainTimeoutMs });
  // Components start in this order and stop in reverse.
  const components = [
    {
      name: 'admin server',
      start: async () => {
        const { adminHost, adminPort } = settingsSpec;
        ports.admin = await nameListenSettings(admin.start(), { host: adminHost.env, port: adminPort.env });
      },
      stop: ({ signal }: { readonly signal: AbortSignal }) => admin.stop(signal),
    },
    { name: 'live samples', start: () => context.live.start(), stop: () => context.live.close() },
    {
      name: 'pages',
      start: async () => {
        const { host, port } = settingsSpec;
        ports.http = await nameListenSettings(server.start(), { host: host.env, port: port.env });
      },
      stop: ({ signal }: { readonly signal: AbortSignal }) => server.stop(signal),
    },
    createTermination(health, settings.shutdownDelayMs, [server]),
    {
      name: 'announcement',
      start: () => logger.info({ ...ports, url: settings.externalUrl }, 'listening'),
    },
  ];
  for (const component of [...components, report]) lifecycle.add(component);
  return { lifecycle, health, ports };
}
