import { ProtocolError } from '../protocol-error.ts';
import type { GrantHandler } from '../server-context.ts';

/**
 * A token for the subject of an assertion that the client's `verifyAssertion` accepts.
 *
 * @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1
 */
export const jwtBearerGrant: GrantHandler = async (_context, client, params) => {
  const assertion = params.get('assertion') ?? '';
  if (client.verifyAssertion === undefined || !(await client.verifyAssertion(assertion))) {
    return { ok: false, error: new ProtocolError('invalid_grant', 'the assertion was not accepted') };
  }
  const { clientId } = client;
  const grant = { clientId, subject: clientId, scope: params.get('scope') ?? '', revoked: false };
  return { ok: true, grant, withRefreshToken: false };
};
