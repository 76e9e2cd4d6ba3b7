import pino, { type DestinationStream, type LogFn, type Logger } from 'pino';
import { isAppError, toPublicError } from './errors.ts';
import { maskUrl } from './text.ts';
import { monotonicNow } from './time.ts';

export type { Logger } from 'pino';

/** An error as it is logged. */
type SerializedError = {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  /** Log-only detail of an AppError. */
  readonly detail?: string;
  readonly stack?: string;
  readonly cause?: SerializedError;
  /** The parts of an AggregateError. */
  readonly errors?: readonly SerializedError[];
};

/** Maximum length of a chain of causes: it may have a cycle. */
const maxCauses = 5;
/** Maximum number of logged parts of an AggregateError. */
const maxErrors = 5;

/** Longer messages and stacks are truncated: both may contain what a client sent. */
const maxLength = 16_384;

/**
 * Any thrown value for the log: message, code, detail, stack and causes, with credentials in URLs
 * masked.
 */
function serializeError(error: unknown, depth = 0): SerializedError {
  if (!(error instanceof Error)) return { type: typeof error, message: shown(describe(error)) };
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  const deeper = depth < maxCauses;
  return {
    type: error.name,
    message: shown(error.message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof detail === 'string' ? { detail: shown(detail) } : {}),
    ...(error.stack === undefined ? {} : { stack: shown(error.stack) }),
    ...(deeper && error.cause !== undefined ? { cause: serializeError(error.cause, depth + 1) } : {}),
    ...(deeper && error instanceof AggregateError
      ? { errors: error.errors.slice(0, maxErrors).map((part) => serializeError(part, depth + 1)) }
      : {}),
  };
}

function shown(text: string): string {
  return maskUrl(text.length > maxLength ? `${text.slice(0, maxLength)}…` : text);
}

function describe(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown);
  try {
    return JSON.stringify(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}

/** Texts that logrus does not quote. */
const plain = /^[\w\-./@^+]+$/;

/**
 * Turns a JSON log line into text as logrus writes it: `time="…" level=info msg="…" key=value`,
 * always on one line. An error becomes `err="message"`, `err.code` and `err.cause`; its stack is in
 * the JSON format only.
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
  return `${all.map(([name, value]) => `${name}=${formatValue(value)}`).join(' ')}\n`;
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

function formatValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // JSON escapes line breaks and terminal control codes, except for these three line separators.
  return plain.test(text) ? text : JSON.stringify(text).replace(/[\u0085\u2028\u2029]/g, escapeUnicode);
}

function escapeUnicode(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Values of LOG_LEVEL, from most to least verbose. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

/** A log level: lines at it and above are written. */
export type LogLevel = (typeof logLevels)[number];

/** Further spellings of levels, as logrus has them; the `synonyms` of a `oneOf` setting. */
export const logLevelSynonyms = { warning: 'warn', panic: 'fatal' } as const satisfies Record<
  string,
  LogLevel
>;

/**
 * Format of lines: `text` is `time="…" level=info msg="…" key=value`, `json` is one object per
 * line.
 */
export type LogFormat = 'text' | 'json';

/** Options of a logger. */
export type LoggerOptions = {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Default: standard error. */
  readonly destination?: DestinationStream;
  /** Hides credentials in each line, which is in the JSON format, whatever `format` is. */
  readonly mask?: (line: string) => string;
  /** Is called with each masked line in the JSON format, whatever `format` is. */
  readonly onLine?: (line: string) => void;
  /** Unix time in milliseconds. Default `Date.now`. */
  readonly now?: () => number;
};

/**
 * A file that lines are appended to, created when missing.
 *
 * @throws Error when it cannot be opened.
 */
export function logFile(path: string): DestinationStream {
  return pino.destination({ dest: path, append: true, sync: true, mode: 0o640 });
}

const messageKey = '@message';
const timestampKey = '@timestamp';
const reserved = [messageKey, timestampKey, 'level'];

/** Field names that suggest secrets: redacted in case one is logged by mistake. */
const secretFields = ['authorization', 'auth', 'cookie', 'password', 'privateKey', 'secret', 'token'];

/**
 * Creates a logger with the fields `@message`, `@timestamp` (RFC 3339 with fraction) and `level`
 * (lower case, `warning` in full), then the caller's. Lines are written synchronously, so that none
 * is lost when the process ends.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, format, mask, onLine, now = Date.now } = options;
  const { destination = pino.destination({ fd: 2, sync: true }) } = options;
  const formatted: DestinationStream =
    format === 'json' ? destination : { write: (line) => destination.write(formatTextLine(line)) };
  const observed: DestinationStream = {
    write(line) {
      const masked = mask?.(line) ?? line;
      onLine?.(masked);
      formatted.write(masked);
    },
  };
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
      hooks: { logMethod: useErrorMessage },
      redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`]), censor: '(hidden)' },
    },
    mask === undefined && onLine === undefined ? formatted : observed,
  );
}

/** Uses the error's message for a line without one, as pino would, but truncated and masked. */
function useErrorMessage(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [first] = args as readonly unknown[];
  const error = first instanceof Error ? first : (first as { err?: unknown } | undefined)?.err;
  if (args.length === 1 && error instanceof Error) method.call(this, first, serializeError(error).message);
  else method.apply(this, args);
}

function serializeIfError(value: unknown): unknown {
  return value instanceof Error ? serializeError(value) : value;
}

/** Keeps a caller's field from duplicating one of ours: `level` becomes `fields.level`. */
function renameReserved(fields: Record<string, unknown>): Record<string, unknown> {
  if (!reserved.some((name) => Object.hasOwn(fields, name))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [reserved.includes(name) ? `fields.${name}` : name, value]),
  );
}

/** Options of a failure log. */
export interface FailureLogOptions {
  readonly logger: Logger;
  /** The constant message of its lines. */
  readonly message: string;
  /** Default `warn` for an `AppError`, `error` for anything else. */
  readonly level?: 'warn' | 'error';
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  readonly nowMs?: () => number;
}

const intervalMs = 1_000;

/** Different failures logged per interval: their messages may contain what callers send. */
const maxKinds = 50;

const maxKindLength = 200;

/**
 * Logs failed calls: equal failures once a second, with the number of lines withheld since the last
 * one. While a counter backend is down, every call fails.
 */
export class FailureLog {
  readonly #options: FailureLogOptions;
  readonly #nowMs: () => number;
  readonly #logged = new Set<string>();
  #untilMs = Number.NEGATIVE_INFINITY;
  #withheld = 0;

  constructor(options: FailureLogOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? monotonicNow;
  }

  log(error: unknown, fields: Readonly<Record<string, unknown>> = {}): void {
    if (this.#nowMs() >= this.#untilMs) {
      this.#untilMs = this.#nowMs() + intervalMs;
      this.#logged.clear();
    }
    const { code } = toPublicError(error);
    const kind = `${code} ${error instanceof Error ? error.message : error}`.slice(0, maxKindLength);
    if (this.#logged.has(kind) || this.#logged.size >= maxKinds) {
      this.#withheld += 1;
      return;
    }
    this.#logged.add(kind);
    const { logger, level = isAppError(error) ? 'warn' : 'error', message } = this.#options;
    logger[level]({ err: error, code, ...fields, withheld: this.#withheld }, message);
    this.#withheld = 0;
  }
}
