import pino, { type DestinationStream, type LogFn, type Logger } from 'pino';
import { serializeError } from './serialize-error.ts';
import { formatTextLine } from './text-log-line.ts';

export type { Logger } from 'pino';

/** The words LOG_LEVEL knows, from most to least. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

/** A level of the log: everything at it and above is written. */
export type LogLevel = (typeof logLevels)[number];

/** Further spellings of levels, as logrus has them; the `synonyms` of a `oneOf` setting. */
export const logLevelSynonyms = { warning: 'warn', panic: 'fatal' } as const satisfies Record<
  string,
  LogLevel
>;

/** How a line is written: `text` is `time="…" level=info msg="…" key=value`, `json` one object a line. */
export type LogFormat = 'text' | 'json';

/** Everything a logger may be given. */
export type LoggerOptions = {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Where lines go; standard error when absent. */
  readonly destination?: DestinationStream;
  /** Wall clock in milliseconds since 1970; the system's when absent. */
  readonly now?: () => number;
};

/** A file that lines are appended to, made when it is not there. @throws Error when it cannot be opened. */
export function logFile(path: string): DestinationStream {
  return pino.destination({ dest: path, append: true, sync: true, mode: 0o640 });
}

const messageKey = '@message';
const timestampKey = '@timestamp';
const reserved = [messageKey, timestampKey, 'level'];

/** Field names that hold secrets by their name; a second net below not logging them at all. */
const secretFields = ['authorization', 'auth', 'cookie', 'password', 'privateKey', 'secret', 'token'];

/**
 * Creates a logger with the fields `@message`, `@timestamp` (RFC 3339 with fraction) and `level` (lower case, `warning` in full),
 * then the caller's. Lines leave synchronously, so that none is lost when the process ends.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, format, destination = pino.destination({ fd: 2, sync: true }), now = Date.now } = options;
  return pino(
    {
      level,
      messageKey,
      base: null,
      timestamp: () => `,"${timestampKey}":"${new Date(now()).toISOString()}"`,
      formatters: {
        level: (label) => ({ level: label === 'warn' ? 'warning' : label }),
        log: renameReserved,
      },
      serializers: { err: serializeError, error: serializeError, reason: serializeIfError },
      hooks: { logMethod: nameUnnamedError },
      redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`]), censor: '(hidden)' },
    },
    format === 'json' ? destination : { write: (line: string) => destination.write(formatTextLine(line)) },
  );
}

/** Gives a line without a message that of its error, as pino would, but cut and masked. */
function nameUnnamedError(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [first] = args as readonly unknown[];
  const error = first instanceof Error ? first : (first as { err?: unknown } | undefined)?.err;
  if (args.length === 1 && error instanceof Error) method.call(this, first, serializeError(error).message);
  else method.apply(this, args);
}

function serializeIfError(value: unknown): unknown {
  return value instanceof Error ? serializeError(value) : value;
}

/** Keeps a caller's field from doubling one of ours: `level` becomes `fields.level`. */
function renameReserved(fields: Record<string, unknown>): Record<string, unknown> {
  if (!reserved.some((name) => Object.hasOwn(fields, name))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [reserved.includes(name) ? `fields.${name}` : name, value]),
  );
}
