import { isEqualConstantTime } from '../encoding.ts';
import {
  AuthorizationResponseError,
  ConfigurationError,
  IssuerMismatchError,
  ParseError,
  StateMismatchError,
} from '../errors.ts';
import { readBody } from '../http/body.ts';
import type { WireParams } from '../http/options.ts';
import { quote } from '../text.ts';
import type { AuthorizationTransaction } from './start.ts';

/**
 * The URL the user came back to, absolute or only its query; or the body of a `form_post` callback; or the request that brought either.
 * Fragments are read too.
 */
export type AuthorizationCallback = string | URL | URLSearchParams | Request;

/** Maximum size of a callback's body: enough for a code, a state and an ID token. */
const MAX_BODY_BYTES = 65_536;

/**
 * Reads the parameters of a callback. A request's own body stays unread.
 * @throws {ParseError} when a request has a body that is no form, or a very long one.
 * @throws {ConfigurationError} for what is no callback.
 */
export async function readCallback(callback: AuthorizationCallback): Promise<URLSearchParams> {
  if (!isRequest(callback)) return callbackParams(callback);
  if (callback.method.toUpperCase() !== 'POST') return callbackParams(callback.url);
  // Node's own requests have a URL, and no body that could be read twice.
  if (typeof callback.clone !== 'function') throw notACallback();
  const type = callback.headers.get('content-type') ?? '';
  if (!type.toLowerCase().startsWith('application/x-www-form-urlencoded'))
    throw new ParseError('the callback is a POST whose body is not a form');
  if (callback.bodyUsed)
    throw new ConfigurationError("the callback's body was read before: give its form as URLSearchParams");
  return new URLSearchParams(await readBody(callback.clone(), MAX_BODY_BYTES));
}

/** By its shape: frameworks have Request classes of their own. */
function isRequest(callback: AuthorizationCallback): callback is Request {
  return typeof callback === 'object' && callback !== null && 'url' in callback && 'method' in callback;
}

/** What a callback is checked against. */
export interface CheckAuthorizationOptions {
  /**
   * Whether the callback must carry `iss`. An `iss` that is there is always compared. Default: the client's
   * `authorizationResponseIssParameterSupported`, which discovery sets.
   */
  readonly issuerRequired?: boolean;
}

/** A code that may be exchanged, and the parameters that its token request must repeat. */
export interface CheckedAuthorization {
  readonly code: string;
  readonly state: string;
  readonly nonce: string | undefined;
  readonly maxAgeSeconds: number | undefined;
  readonly params: WireParams;
}

/** Parameters whose repetition could make us and another reader of the URL see different values. */
const singleNames = ['state', 'iss', 'error', 'code', 'response'] as const;

/**
 * Checks a callback against its transaction: state in constant time, issuer, the server's error. Nothing is sent.
 *
 * @throws {StateMismatchError} when the callback belongs to another session, or was made up
 * @throws {IssuerMismatchError} when another server answered (mix-up attack)
 * @throws {AuthorizationResponseError} when the server refused, or the user did (`access_denied`)
 * @throws {ParseError} when it holds neither code nor error, or a parameter twice
 * @see RFC 6749 §4.1.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2
 * @see RFC 9207 §2.4 https://www.rfc-editor.org/rfc/rfc9207#section-2.4
 */
export function checkAuthorizationCallback(
  callback: Exclude<AuthorizationCallback, Request>,
  transaction: AuthorizationTransaction | undefined,
  { issuerRequired = false }: CheckAuthorizationOptions = {},
): CheckedAuthorization {
  if (transaction === undefined || transaction === null) {
    throw new StateMismatchError('no authorization was started in this session, or it is over; start again');
  }
  const received = callbackParams(callback);
  for (const name of singleNames) {
    if (received.getAll(name).length > 1)
      throw new ParseError(`the callback holds \`${name}\` more than once`);
  }
  assertState(received.get('state'), transaction.state);
  assertIssuer(received.get('iss'), transaction.issuer, issuerRequired);
  if (received.has('response')) {
    throw new ConfigurationError(
      'the callback is a signed response (JARM), which is not supported: ask for response_mode=query',
    );
  }
  assertNoError(received);
  const code = received.get('code');
  if (!code) throw new ParseError('the callback holds neither `code` nor `error`');
  const { codeVerifier, redirectUri, state, nonce, maxAgeSeconds } = transaction;
  return {
    ...{ code, state, nonce, maxAgeSeconds },
    params: {
      ...(redirectUri !== undefined && { redirect_uri: redirectUri }),
      ...(codeVerifier !== undefined && { code_verifier: codeVerifier }),
    },
  };
}

function callbackParams(callback: Exclude<AuthorizationCallback, Request>): URLSearchParams {
  if (callback instanceof URLSearchParams) return callback;
  const text = callback instanceof URL ? callback.href : callback;
  // Callers without types.
  if (typeof text !== 'string') throw notACallback();
  const hashAt = text.indexOf('#');
  const bare = hashAt < 0 ? text : text.slice(0, hashAt);
  const query = new URLSearchParams(bare.slice(bare.indexOf('?') + 1));
  // Browser applications get their answer in the fragment when they ask for response_mode=fragment.
  return query.has('state') || hashAt < 0 ? query : new URLSearchParams(text.slice(hashAt + 1));
}

function notACallback(): ConfigurationError {
  return new ConfigurationError(
    'the callback must be its URL as a string or URL, its query or form as URLSearchParams, or a Request of the Fetch standard',
  );
}

function assertState(received: string | null, expected: string): void {
  if (!expected)
    throw new ConfigurationError('the transaction has no state; keep what startAuthorization gave as it is');
  if (received === null) throw new StateMismatchError('the callback has no state; start again');
  if (!isEqualConstantTime(received, expected)) {
    throw new StateMismatchError('the state of the callback is not that of this session; start again');
  }
}

function assertIssuer(received: string | null, expected: string | undefined, required: boolean): void {
  if (received === null) {
    if (required) throw new IssuerMismatchError('the callback has no `iss`, which this server always sends');
    return;
  }
  if (expected !== undefined && received !== expected) {
    throw new IssuerMismatchError(`the callback comes from ${quote(received)}; expected ${quote(expected)}`);
  }
  if (expected === undefined && required) {
    throw new ConfigurationError("the callback's `iss` cannot be checked: set the client's issuer");
  }
}

function assertNoError(received: URLSearchParams): void {
  const error = received.get('error');
  if (error === null) return;
  throw new AuthorizationResponseError({
    code: error,
    description: received.get('error_description') ?? undefined,
    uri: received.get('error_uri') ?? undefined,
  });
}
