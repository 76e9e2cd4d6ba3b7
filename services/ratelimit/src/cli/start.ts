import { configureHeap } from '@tollgate/kit/heap';
import { type Lifecycle, runUntilSignal } from '@tollgate/kit/lifecycle';
import { createLogger, type Logger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import { readSettings, type Settings } from '../config/settings.ts';

/** After four reloads of 100,000 rules the process takes 300 MB instead of 440. */
const heapGrowingPercent = 20;

export interface StartedProcess {
  readonly settings: Settings;
  readonly logger: Logger;
}

interface StartProcessOptions {
  /** Fields of every log line. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Ends what handled signals until now. */
  readonly takeOver?: () => void;
}

/**
 * Reads the settings, starts what `build` makes of them, and exits when that has stopped. Exits
 * with 1 when the settings are invalid, or a file that they name.
 */
export async function startProcess(
  build: (started: StartedProcess) => Promise<Lifecycle>,
  { fields = {}, takeOver }: StartProcessOptions = {},
): Promise<void> {
  configureHeap({ growingPercent: heapGrowingPercent });
  const read = readSettings(process.env);
  if (!read.ok) {
    process.stderr.write(`${formatSettingProblems(read.problems)}\n`);
    process.exit(1);
  }
  const { settings } = read;
  const logger = createLogger({ level: settings.logLevel, format: settings.logFormat }).child(fields);
  try {
    const lifecycle = await build({ settings, logger });
    const exit = (code: number): void => process.exit(code);
    await runUntilSignal(lifecycle, { logger, signals: process, exit, ...(takeOver && { takeOver }) });
  } catch (error) {
    logger.fatal({ err: error }, 'failed to start');
    process.exit(1);
  }
}
