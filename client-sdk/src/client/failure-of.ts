import type { ClientAuthContext } from '../client-auth/client-auth.ts';
import { dependsOnEncoding } from '../client-auth/client-secret-basic.ts';
import type { OAuthError } from '../errors/oauth-error.ts';
import { createRedactor } from '../redact/redactor.ts';
import type { ApiResponse } from '../response/api-response.ts';
import { type ResponseErrorOptions, responseError } from '../response/response-error.ts';
import type { ClientSettings } from './client-settings.ts';
import type { ReadyRequest } from './send-following.ts';
import { maskValues, secretsOf } from './sent-secrets.ts';

/** What the failure of a call is made of. */
export type FailureOptions = Pick<ResponseErrorOptions, 'operation' | 'message' | 'cause'> & {
  readonly settings: ClientSettings;
  /** The verb that was answered; after redirects perhaps another than that of `sent`. */
  readonly method?: string;
  /** The request that failed: its secrets are masked where the server repeats them. */
  readonly sent?: ReadyRequest;
  /** Further secrets. */
  readonly secrets?: readonly string[] | undefined;
  /** What Basic credentials were made of, where they were sent. */
  readonly basic?: ClientAuthContext | undefined;
};

/** Makes the error that a response to a request is. */
export function failureOf(response: ApiResponse, options: FailureOptions): OAuthError {
  const { settings, method, sent, secrets = [], basic, ...rest } = options;
  const redactor = createRedactor(settings.redact);
  const found = sent === undefined ? [] : secretsOf(sent, redactor);
  const { status } = response;
  return responseError(response, {
    ...((status < 200 || status >= 600) && { message: `Unhandled status code value of ${status}` }),
    ...rest,
    ...(method !== undefined && { request: `${method} ${response.url.split(/[?#]/, 1)[0]}` }),
    redactor,
    nowMs: settings.now() * 1000,
    mask: maskValues([...found, ...secrets], redactor.label),
    hintFor: ({ code }) => (code === 'invalid_client' ? encodingHint(basic) : undefined),
  });
}

/** Servers that do not decode the credentials refuse them only where the encodings differ, and never say why. */
function encodingHint(basic: ClientAuthContext | undefined): string | undefined {
  if (basic === undefined || !dependsOnEncoding(basic)) return undefined;
  const other = basic.basicEncoding === 'raw' ? 'rfc6749' : 'raw';
  return `client id or secret have characters that servers decode differently: try \`basicEncoding: '${other}'\``;
}
