import type { DestinationStream, LogFn, Logger } from 'pino';
import pino from 'pino';
import { isAppError, toPublicError } from './errors.ts';
import { maskUrl } from './text.ts';
import { monotonicNow } from './time.ts';

export type { Logger } from 'pino';

/** An error as a log shows it. */
type SerializedError = {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  /** The operator's half of an AppError. */
  readonly detail?: string;
  readonly stack?: string;
  readonly cause?: SerializedError;
  /** The parts of an AggregateError. */
  readonly errors?: readonly SerializedError[];
};

/** Chains of causes are cut here: a cycle must not end the process. */
const deepestCause = 5;
/** Of an AggregateError's parts, this many are shown. */
const mostErrors = 5;

/** Longer messages and stacks are cut: both may hold what a client sent. */
const longestText = 16_384;

/** Describes any thrown value for the log: message, code, detail, stack and the chain of causes, with credentials in URLs masked. */
function serializeError(error: unknown, depth = 0): SerializedError {
  if (!(error instanceof Error)) return { type: typeof error, message: shown(describe(error)) };
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  const deeper = depth < deepestCause;
  return {
    type: error.name,
    message: shown(error.message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof detail === 'string' ? { detail: shown(detail) } : {}),
    ...(error.stack === undefined ? {} : { stack: shown(error.stack) }),
    ...(deeper && error.cause !== undefined ? { cause: serializeError(error.cause, depth + 1) } : {}),
    ...(deeper && error instanceof AggregateError
      ? { errors: error.errors.slice(0, mostErrors).map((part) => serializeError(part, depth + 1)) }
      : {}),
  };
}

function shown(text: string): string {
  return maskUrl(text.length > longestText ? `${text.slice(0, longestText)}…` : text);
}

function describe(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown);
  try {
    return JSON.stringify(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}

/** What logrus leaves without quotes; anything else is quoted. */
const plain = /^[\w\-./@^+]+$/;

/**
 * Turns a JSON log line into text as logrus writes it: `time="…" level=info msg="…" key=value`, always on one line.
 * An error becomes `err="message"` with `err.code` and `err.cause` beside it; its stack is in the JSON format only.
 */
function formatTextLine(json: string): string {
  // Parsed boundary: the line was written by the logger, as one object.
  const {
    '@timestamp': time,
    level,
    '@message': message,
    ...fields
  } = JSON.parse(json) as Record<string, unknown>;
  const head: [string, unknown][] = [
    ['time', time],
    ['level', level],
    ['msg', message ?? ''],
  ];
  const all = [...head, ...Object.entries(fields).flatMap(([name, value]) => flatten(name, value))];
  return `${all.map(([name, value]) => `${name}=${textOf(value)}`).join(' ')}\n`;
}

function flatten(name: string, value: unknown): [string, unknown][] {
  if (!isErrorRecord(value)) return [[name, value]];
  const { message, code, detail, cause, errors = [] } = value;
  return [
    [name, message],
    ...(code === undefined ? [] : ([[`${name}.code`, code]] satisfies [string, unknown][])),
    ...(detail === undefined ? [] : ([[`${name}.detail`, detail]] satisfies [string, unknown][])),
    ...(cause === undefined ? [] : flatten(`${name}.cause`, cause)),
    ...errors.flatMap((part, index) => flatten(`${name}.errors.${index}`, part)),
  ];
}

type ErrorRecord = {
  message: string;
  code?: unknown;
  detail?: unknown;
  cause?: unknown;
  errors?: readonly unknown[];
};

function isErrorRecord(value: unknown): value is ErrorRecord {
  return typeof value === 'object' && value !== null && 'message' in value && 'type' in value;
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // JSON's escapes keep line breaks and terminal control codes out of the line; the last three are breaks it leaves alone.
  return plain.test(text) ? text : JSON.stringify(text).replace(/[\u0085\u2028\u2029]/g, escapeUnicode);
}

function escapeUnicode(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

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

/** Logs a failed call, with what is known of it. */
export type LogFailure = (error: unknown, fields?: Readonly<Record<string, unknown>>) => void;

/** What it takes. */
export interface FailureLogDeps {
  readonly logger: Logger;
  /** The constant message of its lines. */
  readonly message: string;
  /** Default `warn` for an `AppError`, `error` for anything else. */
  readonly level?: 'warn' | 'error';
  /** A clock in milliseconds that does not go back. Default `performance.now`. */
  readonly nowMs?: () => number;
}

const intervalMs = 1_000;

/** Different failures told of in an interval: their messages may hold what callers send. */
const maxKinds = 50;

const maxKindLength = 200;

/**
 * Makes a log of failed calls that tells of equal failures once a second, and of how many it withheld since its last
 * line: while the counter backend is away every call fails, and for as long as that takes.
 */
export function createFailureLog({
  logger,
  message,
  level,
  nowMs = monotonicNow,
}: FailureLogDeps): LogFailure {
  const told = new Set<string>();
  let untilMs = Number.NEGATIVE_INFINITY;
  let withheld = 0;

  return (error, fields) => {
    if (nowMs() >= untilMs) {
      untilMs = nowMs() + intervalMs;
      told.clear();
    }
    const { code } = toPublicError(error);
    const kind = `${code} ${error instanceof Error ? error.message : error}`.slice(0, maxKindLength);
    if (told.has(kind) || told.size >= maxKinds) {
      withheld += 1;
      return;
    }
    told.add(kind);
    logger[level ?? (isAppError(error) ? 'warn' : 'error')](
      { err: error, code, ...fields, withheld },
      message,
    );
    withheld = 0;
  };
}
