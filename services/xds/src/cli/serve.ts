import { configureHeap } from '@tollgate/kit/heap';
import { runUntilSignal } from '@tollgate/kit/lifecycle';
import { createLogger } from '@tollgate/kit/logger';
import { findMisspelled, formatSettingProblems } from '@tollgate/kit/settings';
import { StartReport } from '@tollgate/kit/start-report';
import packageJson from '../../package.json' with { type: 'json' };
import { buildApp } from '../app.ts';
import { readSettings, settingsSpec } from '../config/settings.ts';

/**
 * With 5,000 objects 90 MB of the heap are in use. V8 would let it grow to several times that
 * before a major collection, in bursts of status writes.
 */
const heapGrowingPercent = 20;

/** Serves until a signal. `takeOver` ends what handled signals until then. */
export async function serve(takeOver: () => void): Promise<void> {
  const read = readSettings(process.env);
  if (!read.ok) {
    process.stderr.write(`${formatSettingProblems(read.problems)}\n`);
    process.exit(1);
  }
  const { settings } = read;
  configureHeap({ growingPercent: heapGrowingPercent });
  const report = new StartReport({
    ...{ service: 'xds', version: packageJson.version, replica: settings.podName },
    ...{ spec: settingsSpec, sources: { env: process.env } },
  });
  const { logLevel: level, logFormat: format } = settings;
  const logger = createLogger({ level, format, mask: report.maskLine, onLine: report.readLine });
  for (const { variable, meant } of findMisspelled(settingsSpec, process.env, ['XDS_'])) {
    logger.warn({ variable, meant }, 'unknown setting, possibly misspelled');
  }
  try {
    const { lifecycle } = await buildApp(settings, { logger, nowMs: Date.now, report });
    const exit = (code: number): void => process.exit(code);
    await runUntilSignal(lifecycle, { logger, signals: process, exit, takeOver });
  } catch (error) {
    // Before the components start, only files named by settings can fail.
    logger.fatal({ err: error }, 'failed to start');
    process.exit(1);
  }
}
