import { runUntilSignal } from '@tollgate/kit/lifecycle';
import { createLogger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import { buildApp } from '../app.ts';
import { readSettings } from '../config/settings.ts';
import { SupervisorLink } from '../workers/supervisor-link.ts';

// Started by the supervisor, with the number of the worker.
const [worker] = process.argv.slice(2);
const read = readSettings(process.env);
if (!read.ok) {
  process.stderr.write(`${formatSettingProblems(read.problems)}\n`);
  process.exit(1);
}
const { settings } = read;
const logger = createLogger({ level: settings.logLevel, format: settings.logFormat }).child({
  worker: Number(worker),
});
try {
  const app = await buildApp(settings, {
    logger,
    nowMs: Date.now,
    random: Math.random,
    output: process.stdout,
    warmUp: true,
    supervisor: new SupervisorLink(process),
  });
  await runUntilSignal(app.lifecycle, { logger, signals: process, exit: (code) => process.exit(code) });
} catch (error) {
  logger.fatal({ err: error }, 'failed to start');
  process.exit(1);
}
