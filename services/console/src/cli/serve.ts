import { runUntilSignal } from '@tollgate/kit/lifecycle';
import { createLogger } from '@tollgate/kit/logger';
import { findMisspelled, formatSettingProblems } from '@tollgate/kit/settings';
import { StartReport } from '@tollgate/kit/start-report';
import packageJson from '../../package.json' with { type: 'json' };
import { buildApp } from '../app.ts';
import { readSettings, settingsSpec } from '../config/settings.ts';

/** Serves until a signal. `takeOver` ends what handled signals until then. */
export async function serve(takeOver: () => void): Promise<void> {
  const read = readSettings(process.env);
  if (!read.ok) {
    process.stderr.write(`${formatSettingProblems(read.problems)}\n`);
    process.exit(1);
  }
  const { settings } = read;
  const report = new StartReport({
    ...{ service: 'console', version: packageJson.version },
    ...{ spec: settingsSpec, sources: { env: process.env } },
  });
  const { logLevel: level, logFormat: format } = settings;
  const logger = createLogger({ level, format, mask: report.maskLine, onLine: report.readLine });
  for (const { variable, meant } of findMisspelled(settingsSpec, process.env, ['CONSOLE_'])) {
    logger.warn({ variable, meant }, 'unknown setting, possibly misspelled');
  }
  try {
    const { lifecycle } = await buildApp(settings, { logger, nowMs: Date.now, report });
    const exit = (code: number): void => process.exit(code);
    await runUntilSignal(lifecycle, { logger, signals: process, exit, takeOver });
  } catch (error) {
    logger.fatal({ err: error }, 'failed to start');
    process.exit(1);
  }
}
