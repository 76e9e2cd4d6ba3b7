import { isAppError } from '@tollgate/kit/errors';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { errors, OAuthError, RetryLaterError } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { body, optionalText } from '../http/api.ts';
import { bodyLimits, isTokenForm } from '../http/body.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { requestedAudience, requestMetadata } from '../http/request-metadata.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import { refreshSession } from '../sessions/refresh.ts';
import { sendSession } from '../sessions/session-json.ts';
import { signInWithPassword } from './password.ts';
import { createExchangeCode } from './pkce.ts';
import { refuseIdToken } from './providers.ts';

const tokenBody = body({
  grant_type: optionalText,
  username: optionalText,
  email: optionalText,
  phone: optionalText,
  password: optionalText,
  refresh_token: optionalText,
  auth_code: optionalText,
  code: optionalText,
  code_verifier: optionalText,
  id_token: optionalText,
  provider: optionalText,
  client_id: optionalText,
  issuer: optionalText,
});
const tokenQuery = Type.Object({ grant_type: Type.Optional(Type.String()) });

type TokenBody = Type.Static<typeof tokenBody>;

/** What a grant is given: the members of the body, and the audience that the request is for. */
interface GrantRequest {
  readonly body: TokenBody;
  readonly aud: string;
  readonly metadata: RequestMetadata;
}

/** One way to get tokens. */
type Grant = (request: GrantRequest) => Promise<IssuedSession>;

/** The grants by `grant_type`; a new one is a use case and an entry here. */
function createGrants(deps: Context): ReadonlyMap<string, Grant> {
  const exchangeCode = createExchangeCode(deps);
  return new Map<string, Grant>([
    [
      'password',
      ({ body: { email, phone, password }, aud, metadata }) =>
        signInWithPassword(deps, { email, phone, password, aud }, metadata),
    ],
    [
      'refresh_token',
      ({ body: { refresh_token: refreshToken = '' }, metadata }) => {
        if (refreshToken === '') throw new OAuthError('invalid_request', 'refresh_token required');
        return refreshSession(deps, refreshToken, metadata);
      },
    ],
    [
      'pkce',
      ({ body: { auth_code: authCode, code_verifier: codeVerifier }, metadata }) =>
        exchangeCode({ authCode, codeVerifier }, metadata),
    ],
    // The same as OAuth 2.0 spells it.
    [
      'authorization_code',
      ({ body: { code: authCode, code_verifier: codeVerifier }, metadata }) =>
        exchangeCode({ authCode, codeVerifier }, metadata),
    ],
    // Not served yet.
    [
      'id_token',
      ({ body: { id_token: idToken, provider, client_id: clientId, issuer } }) =>
        refuseIdToken({ idToken, provider, clientId, issuer }),
    ],
    [
      'web3',
      () => {
        throw errors.web3_provider_disabled();
      },
    ],
  ]);
}

/** `/token`, as GoTrue has it (JSON, the grant in the query) and as OAuth 2.0 has it (a form with `grant_type`). */
export const addTokenRoutes: AddRoutes = (api, deps) => {
  const grants = createGrants(deps);
  const schema = { body: tokenBody, querystring: tokenQuery };
  api.post(
    '/token',
    { schema, config: { limiter: 'token' }, bodyLimit: bodyLimits.token },
    async (request, reply) => {
      const metadata = requestMetadata(request, deps);
      const aud = requestedAudience(request, deps);
      if (isTokenForm(request.headers['content-type'], request.body)) {
        return answerForm(reply, grants, { body: withUsername(request.body), aud, metadata });
      }
      const grant = grants.get(request.query.grant_type ?? '');
      if (grant === undefined) throw errors.invalid_credentials({ message: 'unsupported_grant_type' });
      return sendSession(reply, await grant({ body: request.body, aud, metadata }));
    },
  );
};

async function answerForm(
  reply: FastifyReply,
  grants: ReadonlyMap<string, Grant>,
  request: GrantRequest,
): Promise<FastifyReply> {
  const grant = grants.get(request.body.grant_type ?? '');
  if (grant === undefined) throw new OAuthError('unsupported_grant_type', 'There is no such grant_type');
  try {
    return sendSession(reply, await grant(request));
  } catch (error) {
    // What a grant refuses with 400 is the grant that is not valid; limits and failures keep their status.
    if (!isAppError(error) || error instanceof OAuthError || error instanceof RetryLaterError) throw error;
    if (error.httpStatus >= 500 || error.httpStatus === 429) throw error;
    const code = error.code === 'validation_failed' ? 'invalid_request' : 'invalid_grant';
    throw new OAuthError(code, error.message);
  }
}

/** OAuth 2.0 knows the user as `username`. @see RFC 6749 §4.3.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.3.2 */
function withUsername(body: TokenBody): TokenBody {
  const { username } = body;
  if (username === undefined || body.email !== undefined || body.phone !== undefined) return body;
  return username.includes('@') ? { ...body, email: username } : { ...body, phone: username };
}
