/** The API server's refusal: a response other than 2xx, or an ERROR event of a watch. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status, also where it came as an event of a watch. */
  readonly status: number;
  /** Kubernetes' word for it, such as `Expired`, `Forbidden`, `Conflict`; empty where it gave none. */
  readonly reason: string;
  /** How long the server asks to be left alone; 0 where it did not ask. */
  readonly retryAfterMs: number;

  constructor(status: number, { reason = '', message = '', retryAfterMs = 0 }: ApiErrorDetails = {}) {
    super(message || `the API server answered ${status}`);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What is known of a refusal besides its status. */
export interface ApiErrorDetails {
  readonly reason?: string;
  readonly message?: string;
  readonly retryAfterMs?: number;
}

/** Reads a `metav1.Status`, the body of a refusal; of anything else, such as a proxy's page, the beginning is the message. */
export function apiErrorFrom(status: number, body: string, retryAfterMs = 0): ApiError {
  const { reason, message } = readStatus(body);
  return new ApiError(status, { reason, message: message || excerpt(status, body), retryAfterMs });
}

/** Whether the error is a refusal with this HTTP status. */
export function hasStatus(error: unknown, ...statuses: readonly number[]): error is ApiError {
  return error instanceof ApiError && statuses.includes(error.status);
}

/** Enough of a proxy's page to recognise it. */
const maxExcerptChars = 200;

function excerpt(status: number, body: string): string {
  const text = body.trim().slice(0, maxExcerptChars);
  return text === '' ? '' : `the API server answered ${status}: ${text}`;
}

function readStatus(body: string): { reason: string; message: string } {
  try {
    const value: unknown = JSON.parse(body);
    return { reason: textOf(value, 'reason'), message: textOf(value, 'message') };
  } catch {
    return { reason: '', message: '' };
  }
}

function textOf(value: unknown, key: string): string {
  if (typeof value !== 'object' || value === null) return '';
  const field: unknown = Reflect.get(value, key);
  return typeof field === 'string' ? field : '';
}
