import { isAppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors, OAuthError, RetryLaterError } from '../errors.ts';
import { exchangeCode, parseCodeChallenge } from '../flows/pkce.ts';
import { type AddRoutes, body, bodyLimits, optionalFlag, optionalObject, optionalText } from '../http/api.ts';
import { formType } from '../http/body-parsers.ts';
import { redirectTarget } from '../http/redirects.ts';
import {
  limitedClient,
  type RequestMetadata,
  requestedAudience,
  requestMetadata,
} from '../http/request-metadata.ts';
import { signInWithIdToken } from '../providers/id-token-grant.ts';
import { checkMayLink } from '../providers/identities.ts';
import { authenticateUser } from '../sessions/authenticate.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import { refreshSession } from '../sessions/refresh.ts';
import { sendSession } from '../sessions/response.ts';
import { signInWithWeb3 } from '../web3/grant.ts';
import { recover, resend, sendOtp } from './otp.ts';
import { type SignInContext, signInWithPassword } from './password.ts';

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
  access_token: optionalText,
  nonce: optionalText,
  link_identity: optionalFlag,
  provider: optionalText,
  client_id: optionalText,
  issuer: optionalText,
  chain: optionalText,
  message: optionalText,
  /** A text; checked after whether the provider is enabled. */
  signature: Type.Optional(Type.Unknown()),
});
const tokenQuery = Type.Object({ grant_type: Type.Optional(Type.String()) });

type TokenBody = Type.Static<typeof tokenBody>;

interface GrantRequest {
  readonly request: FastifyRequest;
  readonly body: TokenBody;
  readonly aud: string;
  readonly metadata: RequestMetadata;
}

type Grant = (context: SignInContext, request: GrantRequest) => Promise<IssuedSession>;

/** Grants by `grant_type`. */
const grants: ReadonlyMap<string, Grant> = new Map<string, Grant>([
  [
    'password',
    (context, { body: { email, phone, password }, aud, metadata }) =>
      signInWithPassword(context, { email, phone, password, aud }, metadata),
  ],
  [
    'refresh_token',
    async (context, { request, body: { refresh_token: refreshToken = '' }, metadata }) => {
      if (refreshToken === '') throw new OAuthError('invalid_request', 'refresh_token required');
      try {
        return await refreshSession(context, { refreshToken }, metadata);
      } catch (error) {
        if (isAppError(error) && error.code === 'refresh_token_not_found')
          context.limiter.enforceFailure('token', limitedClient(request, context.settings));
        throw error;
      }
    },
  ],
  [
    'pkce',
    (context, { body: { auth_code: authCode, code_verifier: codeVerifier }, metadata }) =>
      exchangeCode(context, { authCode, codeVerifier }, metadata),
  ],
  // OAuth 2.0 has other names for the members.
  [
    'authorization_code',
    (context, { body: { code: authCode, code_verifier: codeVerifier }, metadata }) =>
      exchangeCode(context, { authCode, codeVerifier }, metadata),
  ],
  ['id_token', grantIdToken],
  ['web3', grantWeb3],
]);

/**
 * `/token`: GoTrue's form (JSON, grant in the query) and OAuth 2.0's (a form with `grant_type`).
 */
export const addTokenRoutes: AddRoutes<SignInContext> = (api, context) => {
  const schema = { body: tokenBody, querystring: tokenQuery };
  api.post(
    '/token',
    { schema, config: { limiter: 'token', captcha: needsCaptcha }, bodyLimit: bodyLimits.token },
    async (request, reply) => {
      const metadata = requestMetadata(request, context);
      const aud = requestedAudience(request, context);
      if (isTokenForm(request.headers['content-type'], request.body))
        return sendSession(reply, await grantForm(context, { request, body: request.body, aud, metadata }));
      const grant = grants.get(request.query.grant_type ?? '');
      if (grant === undefined) throw errors.invalid_credentials({ message: 'unsupported_grant_type' });
      return sendSession(reply, await grant(context, { request, body: request.body, aud, metadata }));
    },
  );
};

/** Whether a request is an OAuth 2.0 form, with `grant_type` in the body. */
function isTokenForm(contentType: string | undefined, body: Readonly<Record<string, unknown>>): boolean {
  return (contentType?.toLowerCase().startsWith(formType) ?? false) && 'grant_type' in body;
}

/** Other grants have a secret that only a client after a sign-in has. */
function needsCaptcha(request: FastifyRequest): boolean {
  // Parsed by the schema of the route.
  const body = request.body as TokenBody;
  const query = request.query as Type.Static<typeof tokenQuery>;
  const isForm = isTokenForm(request.headers['content-type'], body);
  const grant = (isForm ? body : query).grant_type;
  return grant === 'password' || grant === 'web3';
}

async function grantIdToken(context: SignInContext, { request, body, metadata }: GrantRequest) {
  const { id_token: idToken, access_token: accessToken, nonce, provider, client_id: clientId, issuer } = body;
  const presented = { idToken, accessToken, nonce, provider, clientId, issuer };
  const authenticate = async () => {
    const caller = await authenticateUser(request, context);
    checkMayLink(context, caller);
    return caller.user;
  };
  const linking = body.link_identity === true ? { authenticate } : {};
  return signInWithIdToken(context, { ...presented, ...linking }, metadata);
}

async function grantWeb3(context: SignInContext, { request, body, metadata }: GrantRequest) {
  await context.limiter.enforceRequest('web3', limitedClient(request, context.settings));
  const { chain, message, signature } = body;
  return signInWithWeb3(context, { chain, message, signature }, metadata);
}

async function grantForm(context: SignInContext, request: GrantRequest): Promise<IssuedSession> {
  const grant = grants.get(request.body.grant_type ?? '');
  if (grant === undefined) throw new OAuthError('unsupported_grant_type', 'Unknown grant_type');
  try {
    return await grant(context, { ...request, body: mapUsername(request.body) });
  } catch (error) {
    // Other 4xx errors mean an invalid grant; rate limits and failures keep their status.
    if (!isAppError(error) || error instanceof OAuthError || error instanceof RetryLaterError) throw error;
    if (error.httpStatus >= 500 || error.httpStatus === 429) throw error;
    const code = error.code === 'validation_failed' ? 'invalid_request' : 'invalid_grant';
    throw new OAuthError(code, error.message);
  }
}

/**
 * OAuth 2.0 has a single `username`.
 *
 * @see RFC 6749 §4.3.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.3.2
 */
function mapUsername(body: TokenBody): TokenBody {
  const { username } = body;
  if (username === undefined || body.email !== undefined || body.phone !== undefined) return body;
  return username.includes('@') ? { ...body, email: username } : { ...body, phone: username };
}

const challenge = { code_challenge: optionalText, code_challenge_method: optionalText };
const recoverBody = body({ email: optionalText, ...challenge });
const magicLinkBody = body({ email: optionalText, data: optionalObject, ...challenge });
const otpBody = body({
  email: optionalText,
  phone: optionalText,
  create_user: Type.Optional(Type.Boolean()),
  data: optionalObject,
  channel: optionalText,
  ...challenge,
});
const resendBody = body({ type: optionalText, email: optionalText, phone: optionalText, ...challenge });

const limiter = { config: { limiter: 'otp', captcha: () => true } } as const;
const withContact = { ...limiter, bodyLimit: bodyLimits.contact } as const;
const withMetadata = { ...limiter, bodyLimit: bodyLimits.metadata } as const;

/**
 * Routes that send a link or a code: `/otp`, its predecessor `/magiclink`, `/recover`, `/resend`.
 */
export const addOtpRoutes: AddRoutes<SignInContext> = (api, context) => {
  const commonInput = (request: FastifyRequest, members: Parameters<typeof parseCodeChallenge>[0]) => ({
    challenge: parseCodeChallenge(members),
    redirectTo: redirectTarget(request, undefined, context),
    aud: requestedAudience(request, context),
  });

  api.post('/otp', { schema: { body: otpBody }, ...withMetadata }, async (request, reply) => {
    const { email, phone, create_user: createUser, channel } = request.body;
    const data = request.body.data as JsonObject | undefined; // parsed from JSON
    const input = { email, phone, createUser, channel, data, ...commonInput(request, request.body) };
    return sendMessageId(reply, await sendOtp(context, input, requestMetadata(request, context)));
  });

  api.post('/magiclink', { schema: { body: magicLinkBody }, ...withMetadata }, async (request, reply) => {
    const { email = '' } = request.body;
    if (email === '')
      throw errors.validation_failed({ httpStatus: 422, message: 'Password recovery requires an email' });
    const data = request.body.data as JsonObject | undefined; // parsed from JSON
    const input = { email, data, ...commonInput(request, request.body) };
    return sendMessageId(reply, await sendOtp(context, input, requestMetadata(request, context)));
  });

  api.post('/recover', { schema: { body: recoverBody }, ...withContact }, async (request, reply) => {
    const input = { email: request.body.email, ...commonInput(request, request.body) };
    await recover(context, input, requestMetadata(request, context));
    return reply.send({});
  });

  api.post('/resend', { schema: { body: resendBody }, ...withContact }, async (request, reply) => {
    const { type, email, phone } = request.body;
    const input = { type, email, phone, ...commonInput(request, request.body) };
    return sendMessageId(reply, await resend(context, input, requestMetadata(request, context)));
  });
};

function sendMessageId(reply: FastifyReply, { messageId }: { readonly messageId?: string }): FastifyReply {
  return reply.send(messageId === undefined ? {} : { message_id: messageId });
}
