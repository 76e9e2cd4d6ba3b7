import { createLogger, type Logger, logFile } from '@tollgate/kit/logger';
import type { Settings } from '../settings/settings.ts';

/** The logger that the settings ask for: JSON, in development mode text; to a file, or to standard error. Exits with 1 when there is no such file. */
export function createCommandLogger(settings: Pick<Settings, 'logLevel' | 'logFile' | 'mode'>): Logger {
  const format = settings.mode === 'development' ? 'text' : 'json';
  const destination = settings.logFile === '' ? undefined : openFile(settings.logFile);
  return createLogger({ level: settings.logLevel, format, ...(destination && { destination }) });
}

function openFile(path: string): ReturnType<typeof logFile> {
  try {
    return logFile(path);
  } catch (error) {
    const because = error instanceof Error ? error.message : String(error);
    process.stderr.write(`LOG_FILE cannot be written: ${because}\n`);
    process.exit(1);
  }
}
