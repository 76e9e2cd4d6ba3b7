import type { Lifecycle } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { findMisspelled, findReplaced } from '@tollgate/kit/settings';
import { settingsSpec } from '../config/settings.ts';
import { type StartedProcess, startProcess } from './start.ts';

const prefixes = ['ADMIN_', 'KVSTORE_', 'GRPC_', 'RUNTIME_', 'CONFIG_GRPC_XDS_', 'XDS_CLIENT_'];

function warnOfSettings(logger: Logger): void {
  for (const { variable, meant } of findMisspelled(settingsSpec, process.env, prefixes)) {
    logger.warn({ variable, meant }, 'unknown setting, possibly misspelled');
  }
  for (const { variable, value, used } of findReplaced(settingsSpec, process.env)) {
    logger.warn({ variable, value, used }, 'setting out of range, using the nearest value');
  }
}

async function build({ settings, logger }: StartedProcess): Promise<Lifecycle> {
  warnOfSettings(logger);
  const options = { logger, nowMs: Date.now, output: process.stdout };
  // Only what this process needs is loaded: the supervisor of workers serves no requests.
  if (settings.workers > 1) {
    const { buildSupervisorApp } = await import('../workers/supervisor-app.ts');
    return buildSupervisorApp(settings, options);
  }
  const { buildApp } = await import('../app.ts');
  const { lifecycle } = await buildApp(settings, { ...options, random: Math.random, warmUp: true });
  return lifecycle;
}

/** Serves until a signal. `takeOver` ends what handled signals until then. */
export async function serve(takeOver: () => void): Promise<void> {
  await startProcess(build, { takeOver });
}
