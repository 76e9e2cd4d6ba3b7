import { createLogger, type Logger } from '@tollgate/kit/logger';

/** A logger whose lines are kept as objects. */
export function recordingLogger(): { logger: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  // Parsed boundary: the JSON format is one object a line.
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { logger: createLogger({ level: 'trace', format: 'json', destination: { write } }), lines };
}
