/**
 * gRPC status codes.
 * @see https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
 */
export const grpcStatus = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

/** One of the numbers in {@link grpcStatus}. */
export type GrpcStatus = (typeof grpcStatus)[keyof typeof grpcStatus];

/** An entry of a catalogue: the mapping of an error to HTTP and gRPC, and its public message. */
export type ErrorDefinition = {
  readonly httpStatus: number;
  readonly grpcStatus: GrpcStatus;
  /** Public. Says what to do, and never contains values that only the operator may see. */
  readonly message: string;
};

/** Additions of one occurrence to its definition. `detail` and `cause` are only logged. */
export type ErrorOccurrence = {
  readonly message?: string;
  /** Overrides the definition's, for codes with more than one status. */
  readonly httpStatus?: number;
  readonly detail?: string;
  readonly cause?: unknown;
};

/**
 * An error with a stable `code`, its HTTP and gRPC status, a public `message`, and a log-only
 * `detail` and `cause`.
 */
export class AppError extends Error {
  override readonly name: string = 'AppError';
  /** snake_case; public API, never reused for another meaning. */
  readonly code: string;
  readonly httpStatus: number;
  readonly grpcStatus: GrpcStatus;
  readonly detail?: string;

  constructor(code: string, definition: ErrorDefinition, occurrence: ErrorOccurrence = {}) {
    super(occurrence.message ?? definition.message, 'cause' in occurrence ? { cause: occurrence.cause } : {});
    this.code = code;
    this.httpStatus = occurrence.httpStatus ?? definition.httpStatus;
    this.grpcStatus = definition.grpcStatus;
    if (occurrence.detail !== undefined) this.detail = occurrence.detail;
  }
}

/** A catalogue has one factory per code. */
export type ErrorCatalogue<D extends Readonly<Record<string, ErrorDefinition>>> = {
  readonly [Code in keyof D & string]: ((occurrence?: ErrorOccurrence) => AppError) & {
    readonly definition: D[Code];
  };
};

/**
 * Defines the error catalogue of a service: `const errors = defineErrors({ domain_empty: {…} })`,
 * then `throw errors.domain_empty({ detail })`. Each factory has its `definition`, for the
 * generated documentation. Throws when a code is not snake_case.
 */
export function defineErrors<const D extends Readonly<Record<string, ErrorDefinition>>>(
  definitions: D,
): ErrorCatalogue<D> {
  const makers = Object.entries(definitions).map(([code, definition]) => {
    if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(code))
      throw new TypeError(`error code is not snake_case: ${code}`);
    const make = (occurrence?: ErrorOccurrence): AppError => new AppError(code, definition, occurrence);
    return [code, Object.assign(make, { definition })] as const;
  });
  // Object.fromEntries loses the types of keys; the entries come from `definitions`.
  return Object.freeze(Object.fromEntries(makers)) as ErrorCatalogue<D>;
}

/** Whether a thrown value is an {@link AppError}, with the given code if any. */
export function isAppError(error: unknown, code?: string): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** The public part of an error. */
export type PublicError = Pick<AppError, 'code' | 'httpStatus' | 'grpcStatus' | 'message'>;

/**
 * The public part of any thrown value; anything but an AppError becomes `internal_error` (500,
 * INTERNAL).
 */
export function toPublicError(error: unknown): PublicError {
  if (error instanceof AppError) {
    return {
      code: error.code,
      httpStatus: error.httpStatus,
      grpcStatus: error.grpcStatus,
      message: error.message,
    };
  }
  return {
    code: 'internal_error',
    httpStatus: 500,
    grpcStatus: grpcStatus.internal,
    message: 'Internal error',
  };
}

/** The message of an error. An AggregateError (several addresses of a host) has none itself. */
export function getErrorMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map(getErrorMessage).join('; ');
}

/** Whether the file system has no such file or folder. */
export function isMissingFile(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** Why a request got no response: `fetch failed` says nothing, and has the reason in its cause. */
export function getRequestFailure(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  return cause.name === 'TimeoutError' ? 'no response in time' : getErrorMessage(cause) || cause.name;
}
