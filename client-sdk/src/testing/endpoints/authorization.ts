import { ProtocolError } from '../protocol-error.ts';
import type { EndpointRequest, PendingCode, ServerContext } from '../server-context.ts';
import type { TestGrant } from '../token-ledger.ts';
import { issueTokens } from './token.ts';

/** What the user at the browser does. */
export interface AuthorizationDecision {
  /** Who signs in. Default: the first user of the server. */
  subject?: string;
  /** The user refuses: the callback says `access_denied`. */
  deny?: boolean;
}

/**
 * Answers the browser's request with a redirect to the client's callback, as if the user had just decided.
 *
 * @throws ProtocolError when client or redirect URI are wrong: nothing is redirected then.
 * @see RFC 6749 §4.1.1, §4.1.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1
 */
export async function authorizationEndpoint(
  context: ServerContext,
  { params }: EndpointRequest,
  decision: AuthorizationDecision = {},
): Promise<Response> {
  const callback = await decide(context, params, decision);
  return new Response(null, { status: 302, headers: { location: callback.href } });
}

async function decide(
  context: ServerContext,
  params: URLSearchParams,
  { subject, deny = false }: AuthorizationDecision,
): Promise<URL> {
  const { settings } = context;
  const client = settings.clients.get(params.get('client_id') ?? '');
  if (client === undefined) throw new ProtocolError('invalid_request', 'unknown client_id');
  const redirectUri = params.get('redirect_uri') ?? client.redirectUris?.[0];
  if (redirectUri === undefined || client.redirectUris?.includes(redirectUri) === false) {
    throw new ProtocolError('invalid_request', 'redirect_uri is not registered');
  }
  const responseType = params.get('response_type');
  const answer = new URLSearchParams({ iss: settings.issuer });
  const state = params.get('state');
  if (state !== null) answer.set('state', state);

  const user = settings.users[0];
  const nonce = params.get('nonce');
  const grant: TestGrant = {
    clientId: client.clientId,
    subject: subject ?? user?.subject ?? user?.username ?? 'user',
    scope: params.get('scope') ?? '',
    ...(nonce !== null && { nonce }),
    revoked: false,
  };
  if (deny) setAll(answer, { error: 'access_denied', error_description: 'the user said no' });
  else if (responseType === 'token') setAll(answer, { ...(await issueTokens(context, grant, false)) });
  else if (responseType !== 'code') setAll(answer, { error: 'unsupported_response_type' });
  else if (client.requirePkce === true && !params.has('code_challenge')) {
    setAll(answer, { error: 'invalid_request', error_description: 'code_challenge is required' });
  } else answer.set('code', issueCode(context, grant, params));

  const callback = new URL(redirectUri);
  if (responseType === 'token') callback.hash = answer.toString();
  else for (const [name, value] of answer) callback.searchParams.append(name, value);
  return callback;
}

function issueCode(context: ServerContext, grant: TestGrant, params: URLSearchParams): string {
  const challenge = params.get('code_challenge');
  const pending: PendingCode = {
    grant,
    redirectUri: params.get('redirect_uri'),
    ...(challenge !== null && {
      challenge: { value: challenge, method: params.get('code_challenge_method') ?? 'plain' },
    }),
    expiresAt: context.now() + context.settings.codeTtlSeconds,
    used: false,
  };
  const code = `code-${crypto.randomUUID()}`;
  context.codes.set(code, pending);
  return code;
}

function setAll(params: URLSearchParams, values: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(values)) params.set(name, String(value));
}
