import type { Redactor } from '../redact/redactor.ts';
import type { ApiResponse, Failure } from '../response/api-response.ts';
import { type ResponseErrorOptions, responseError } from '../response/response-error.ts';
import type { ReadyRequest } from './send-following.ts';
import { maskValues, secretsOf } from './sent-secrets.ts';

/** What the failure of a call is made of. */
export type FailureOptions = Omit<ResponseErrorOptions, 'mask'> & {
  /** The request that failed: its secrets are masked where the server repeats them. */
  readonly sent: ReadyRequest;
  /** Further secrets. */
  readonly secrets: readonly string[];
  readonly redactor: Redactor;
};

/** Makes the error that a response to a request is, and what masks the secrets of that request in the response. */
export function failureOf(response: ApiResponse, options: FailureOptions): Failure {
  const { sent, secrets, redactor, ...rest } = options;
  const mask = maskValues([...secretsOf(sent, redactor), ...secrets], redactor.label);
  return { error: responseError(response, { ...rest, mask }), mask };
}
