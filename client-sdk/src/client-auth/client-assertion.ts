import { ConfigurationError } from '../errors/configuration-error.ts';
import { decodeJwt } from '../jwt/decode.ts';
import type { ClientAssertionAuth, ClientAuthContext, MutableTokenRequest } from './client-auth.ts';
import { jwtBearerAssertionType, putAssertion } from './signed-assertion.ts';

/** Seconds by which our clock may run ahead of the issuer's before an assertion counts as expired here. */
const CLOCK_TOLERANCE_SECONDS = 30;

/**
 * Authenticates the client with an assertion someone else issued, asked for anew each time because files and metadata
 * services rotate it. Only its expiry is looked at: a workload's token names the workload, not the client id.
 *
 * @throws {ConfigurationError} when there is no assertion, or one that has expired (`retryable`: rotation may be late)
 * @see RFC 7521 §4.2 https://www.rfc-editor.org/rfc/rfc7521#section-4.2
 */
export async function clientAssertion(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: ClientAssertionAuth,
): Promise<void> {
  if (request.body.has('client_assertion')) return;
  const assertion = await readAssertion(auth);
  assertNotExpired(assertion, context.now());
  putAssertion(request, context.clientId, assertion, auth.type ?? jwtBearerAssertionType);
}

async function readAssertion(auth: ClientAssertionAuth): Promise<string> {
  let assertion: string;
  try {
    assertion = (await auth.assertion()).trim();
  } catch (cause) {
    throw new ConfigurationError('clientAuth.assertion() failed; see cause', { cause, retryable: true });
  }
  if (assertion === '')
    throw new ConfigurationError('clientAuth.assertion() gave an empty string', { retryable: true });
  return assertion;
}

function assertNotExpired(assertion: string, now: number): void {
  const expiresAt = decodeJwt(assertion)?.claims.exp;
  if (typeof expiresAt !== 'number' || expiresAt + CLOCK_TOLERANCE_SECONDS > now) return;
  const seconds = Math.round(now - expiresAt);
  throw new ConfigurationError(
    `the client assertion expired ${seconds} seconds ago; is what writes it still running?`,
    {
      retryable: true,
    },
  );
}
