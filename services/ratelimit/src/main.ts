#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli';
import { type Lifecycle, runUntilSignal } from '@tollgate/kit/lifecycle';
import { createLogger } from '@tollgate/kit/logger';
import { findMisspelled, findReplaced, formatSettingProblems } from '@tollgate/kit/settings';
import { handleArguments } from './cli/service-arguments.ts';
import { readSettings, settingsSpec } from './config/settings.ts';

const outcome = handleArguments(process.argv.slice(2));
if (outcome !== undefined) {
  finish(outcome);
  process.exit();
}
const read = readSettings(process.env);
if (!read.ok) {
  process.stderr.write(`${formatSettingProblems(read.problems)}\n`);
  process.exit(1);
}
const { settings } = read;
const logger = createLogger({ level: settings.logLevel, format: settings.logFormat });
for (const { variable, meant } of findMisspelled(settingsSpec, process.env, [
  'KVSTORE_',
  'GRPC_',
  'RUNTIME_',
  'CONFIG_GRPC_XDS_',
  'XDS_CLIENT_',
])) {
  logger.warn({ variable, meant }, 'unknown setting, possibly misspelled');
}
for (const { variable, value, used } of findReplaced(settingsSpec, process.env)) {
  logger.warn({ variable, value, used }, 'setting out of range, using the nearest value');
}
const nowMs = Date.now;
const output = process.stdout;

/** Loads only what this process needs: the supervisor of workers serves no requests. */
async function build(): Promise<Lifecycle> {
  if (settings.workers > 1) {
    const { buildSupervisorApp } = await import('./workers/supervisor-app.ts');
    return buildSupervisorApp(settings, { logger, nowMs, output });
  }
  const { buildApp } = await import('./app.ts');
  const app = await buildApp(settings, { logger, nowMs, random: Math.random, output, warmUp: true });
  return app.lifecycle;
}

try {
  const lifecycle = await build();
  await runUntilSignal(lifecycle, { logger, signals: process, exit: (code) => process.exit(code) });
} catch (error) {
  // Usually a file that a setting names.
  logger.fatal({ err: error }, 'failed to start');
  process.exit(1);
}
