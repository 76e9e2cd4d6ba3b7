import { maskUrl } from './mask-url.ts';

/** An error as a log shows it. */
export type SerializedError = {
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
export function serializeError(error: unknown, depth = 0): SerializedError {
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
