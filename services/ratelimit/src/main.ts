#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli';
import { runUntilSignal } from '@tollgate/kit/lifecycle';
import { createLogger } from '@tollgate/kit/logger';
import { findMisspelled, findReplaced, formatSettingProblems } from '@tollgate/kit/settings';
import { buildApp } from './app.ts';
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
try {
  const app = await buildApp(settings, {
    logger,
    nowMs: Date.now,
    random: Math.random,
    output: process.stdout,
    warmUp: true,
  });
  await runUntilSignal(app.lifecycle, { logger, signals: process, exit: (code) => process.exit(code) });
} catch (error) {
  // Usually a file that a setting names.
  logger.fatal({ err: error }, 'not started');
  process.exit(1);
}
