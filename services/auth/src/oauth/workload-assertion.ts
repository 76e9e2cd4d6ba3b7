import { OAuthError } from '../errors.ts';
import { issuerUrl } from '../keys/jwt.ts';
import { tokenEndpoint } from './client-assertion.ts';
import type { PresentedClient } from './client-authentication.ts';
import type { StoredClient } from './client-store.ts';
import { findClient } from './find-client.ts';
import type { GrantContext, TokenRequest } from './grant.ts';

const retryAfterSeconds = 1;

/**
 * Finds the client that a workload may act as: the assertion of a trusted issuer takes the place of
 * a secret. An assertion may be used until it expires: those of Kubernetes last for an hour.
 *
 * @throws OAuthError `invalid_request`, `invalid_grant`, `temporarily_unavailable`
 * @see RFC 7523 §3 https://www.rfc-editor.org/rfc/rfc7523#section-3
 */
export async function findWorkloadClient(
  context: GrantContext,
  presented: PresentedClient,
  { parameter, metadata }: Pick<TokenRequest, 'parameter' | 'metadata'>,
): Promise<StoredClient> {
  const { issuers, settings, logger } = context;
  const { client_id: clientId = '', authorization, client_secret, client_assertion } = presented;
  const assertion = parameter('assertion');
  if (assertion === '') throw new OAuthError('invalid_request', 'assertion is required');
  if (clientId === '')
    throw new OAuthError('invalid_request', 'client_id is required: a workload may act as several clients');
  if (authorization !== undefined || client_secret || client_assertion !== undefined)
    throw new OAuthError('invalid_request', 'The assertion replaces other client authentication');
  const audiences = [issuerUrl(settings), tokenEndpoint(settings)];
  const verified = await issuers.current?.verifyAssertion(assertion, audiences);
  if (verified !== undefined && 'unavailable' in verified)
    throw new OAuthError('temporarily_unavailable', 'The issuer of the assertion cannot be reached', 503, {
      'retry-after': String(retryAfterSeconds),
    });
  if (verified?.ok !== true) {
    const reason = verified?.reason ?? 'no other issuer is trusted';
    logger.debug({ client_id: clientId, reason }, 'rejected the assertion of a workload');
    throw new OAuthError('invalid_grant', `The assertion is not accepted: ${reason}`);
  }
  const { issuer, claims } = verified;
  const client = await findClient(context, clientId, { metadata, allowsExpired: true });
  const workloads = client?.metadata.workload_identities ?? [];
  const isAllowed = workloads.some((each) => each.issuer === issuer && each.subject === claims.sub);
  if (client === undefined || !isAllowed)
    throw new OAuthError('invalid_grant', 'The workload may not act as this client');
  return client;
}
