#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli';
import { runUntilSignal } from '@tollgate/kit/lifecycle';
import { createLogger } from '@tollgate/kit/logger';
import { findMisspelled, formatSettingProblems } from '@tollgate/kit/settings';
import { buildApp } from './app.ts';
import { handleArguments } from './cli/arguments.ts';
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
for (const { variable, meant } of findMisspelled(settingsSpec, process.env, ['XDS_'])) {
  logger.warn({ variable, meant }, 'unknown setting, possibly misspelled');
}
try {
  const app = await buildApp(settings, { logger, nowMs: Date.now });
  await runUntilSignal(app.lifecycle, { logger, signals: process, exit: (code) => process.exit(code) });
} catch (error) {
  // Before the components start, only files named by settings can fail.
  logger.fatal({ err: error }, 'failed to start');
  process.exit(1);
}
