import { isAppError } from '@tollgate/kit/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors, OAuthError, oauthErrorNames, shorten } from '../errors.ts';
import { parseCodeChallenge } from '../flows/pkce.ts';
import { type AddRoutes, bodyLimits } from '../http/api.ts';
import { pageUrl } from '../http/page-url.ts';
import { isProgramOfDevice, redirectTarget, redirectUrl } from '../http/redirects.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import type { ProviderConnection } from '../identity-providers/connection.ts';
import { providerNames } from '../identity-providers/registry.ts';
import { fragmentMarker, sessionFragment } from '../sessions/response.ts';
import type { ProvidersContext } from './connections.ts';
import { sendDevicePage } from './device-page.ts';
import { openBrowserSecret, openSignIn, readBrowserSecret } from './flow.ts';
import { confirmationUrl, isBoundTo, redeemTicket, ticketParameter } from './linking.ts';
import { finishSignIn, type SignInResult, type StartRequest, startSignIn, takeFlow } from './sign-in.ts';

/** For the documentation: a repeated parameter is not an error, and the first one counts. */
export const authorizeQuery = Type.Object({
  provider: Type.Optional(Type.Unknown()),
  redirect_to: Type.Optional(Type.Unknown()),
  scopes: Type.Optional(Type.Unknown()),
  invite_token: Type.Optional(Type.Unknown()),
  code_challenge: Type.Optional(Type.Unknown()),
  code_challenge_method: Type.Optional(Type.Unknown()),
});

/** `/authorize` sends the browser to a provider, which sends it back to `/callback`. */
export const addProviderRoutes: AddRoutes<ProvidersContext> = (api, context) => {
  // Alerts need the series from the start.
  for (const provider of context.providers.names())
    for (const result of ['ok', 'rejected', 'failed'])
      context.metrics.providerSignIns.inc({ provider, result }, 0);
  const authorize = { schema: { querystring: authorizeQuery }, exposeHeadRoute: false };
  api.get('/authorize', authorize, async (request, reply) => {
    const query = readQuery(request);
    if (query.get('provider') === pagesProvider && context.settings.pagesEnabled)
      return reply
        .header('cache-control', 'no-store')
        .redirect(signInPageUrl(readStart(request, query, context), context), 302);
    const connection = await findConnection(context, query.get('provider') ?? '');
    const browserSecret = openBrowserSecret(request, reply, {
      ...context,
      isFormPost: connection.isFormPost,
    });
    const metadata = requestMetadata(request, context);
    const ticket = query.get(ticketParameter);
    reply.header('cache-control', 'no-store');
    if (ticket !== null && !isBoundTo(ticket, browserSecret))
      return reply.redirect(confirmationUrl(context, query), 302);
    const start = readStart(request, query, context);
    const linking = ticket === null ? {} : await redeemTicket(context, { ticket, connection }, metadata);
    const url = await startSignIn(context, connection, { ...start, ...linking, browserSecret }, metadata);
    return reply.redirect(url, 302);
  });
  api.get('/callback', { exposeHeadRoute: false }, (request, reply) =>
    finish(context, { request, reply, parameters: readQuery(request), isFormPost: false }),
  );
  api.post('/callback', { bodyLimit: bodyLimits.token }, (request, reply) =>
    finish(context, { request, reply, parameters: readForm(request.body), isFormPost: true }),
  );
};

/** The value of `provider` for the hosted pages. */
const pagesProvider = 'pages';
/** Parameters that the sign-in page follows. */
const pageParameters: readonly string[] = ['login_hint', 'prompt', 'ui_locales'];

/** The sign-in page, which returns to the app as a provider would. */
function signInPageUrl(
  { redirectTo, challenge, parameters }: StartRequest,
  { settings }: ProvidersContext,
): string {
  const query = new URLSearchParams({
    redirect_to: redirectTo,
    ...(challenge && { code_challenge: challenge.challenge, code_challenge_method: challenge.method }),
    ...Object.fromEntries(Object.entries(parameters).filter(([name]) => pageParameters.includes(name))),
  });
  return `${pageUrl(settings, 'sign-in')}?${query}`;
}

/** SAML is not supported. The responses are those of a GoTrue that has it disabled. */
export const addSamlRoutes: AddRoutes<unknown> = (api) => {
  const refuse = async (): Promise<never> => {
    await Promise.resolve();
    throw errors.saml_provider_disabled();
  };
  // Rejects before the body is read.
  const options = { schema: { hide: true }, onRequest: refuse };
  api.post('/sso', options, refuse);
  api.post('/sso/saml/acs', options, refuse);
  api.get('/sso/saml/metadata', { ...options, exposeHeadRoute: false }, refuse);
};

/** All values of each parameter, as they were sent. */
export function readQuery({ url }: FastifyRequest): URLSearchParams {
  const queryAt = url.indexOf('?');
  return new URLSearchParams(queryAt < 0 ? '' : url.slice(queryAt));
}

function readForm(body: unknown): URLSearchParams {
  const fields = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  return new URLSearchParams(
    fields.filter((field): field is [string, string] => typeof field[1] === 'string'),
  );
}

/** @throws AppError `validation_failed` */
export async function findConnection(
  { providers }: ProvidersContext,
  name: string,
): Promise<ProviderConnection> {
  const connection = await providers.find(name);
  if (connection !== undefined) return connection;
  const isKnown = providerNames.some((known) => known === name);
  const reason = isKnown ? 'provider is not enabled' : `Provider ${shorten(name)} could not be found`;
  throw errors.validation_failed({ message: `Unsupported provider: ${reason}` });
}

/** Parameters of this server, and parameters that it sets itself. */
const ownParameters: ReadonlySet<string> = new Set([
  ...['provider', 'scopes', 'redirect_to', ticketParameter, 'invite_token', 'skip_http_redirect', 'apikey'],
  ...[
    'client_id',
    'client_secret',
    'redirect_uri',
    'response_type',
    'response_mode',
    'scope',
    'state',
    'nonce',
  ],
  ...['code_challenge', 'code_challenge_method', 'code_verifier', 'request', 'request_uri'],
]);

/** Enough for all documented parameters of providers. */
const maxParameters = 20;

/** @throws AppError `validation_failed` */
export function readStart(
  request: FastifyRequest,
  query: URLSearchParams,
  context: ProvidersContext,
): StartRequest {
  const further = [...query].filter(([name]) => !ownParameters.has(name)).slice(0, maxParameters);
  return {
    redirectTo: redirectTarget(request, undefined, context),
    challenge: parseCodeChallenge({
      code_challenge: query.get('code_challenge') ?? '',
      code_challenge_method: query.get('code_challenge_method') ?? '',
    }),
    inviteToken: query.get('invite_token') ?? '',
    scopes: (query.get('scopes') ?? '').split(/[\s,]+/).filter((scope) => scope !== ''),
    parameters: Object.fromEntries(further),
  };
}

interface Callback {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly parameters: URLSearchParams;
  readonly isFormPost: boolean;
}

async function finish(context: ProvidersContext, { request, reply, parameters, isFormPost }: Callback) {
  const { settings } = context;
  const metadata = requestMetadata(request, context);
  reply.header('cache-control', 'no-store');
  const browserSecret = readBrowserSecret(request, { settings, isFormPost });
  const started = await findStarted(context, { parameters, browserSecret }, metadata).catch(
    (error: unknown) => {
      if (!isAppError(error)) throw error;
      return error;
    },
  );
  if (isAppError(started))
    return reply.redirect(redirectUrl(settings.siteUrl, { query: describe(started) }), 303);
  const { flow, connection } = started;
  const callback = { ...started, parameters };
  try {
    const result = await finishSignIn(context, connection, callback, metadata);
    context.metrics.providerSignIns.inc({ provider: flow.provider, result: 'ok' });
    const url = successUrl(flow.redirectTo, result);
    if (isProgramOfDevice(flow.redirectTo, settings))
      return sendDevicePage(settings, url, { request, reply });
    return reply.redirect(url, 302);
  } catch (error) {
    reportFailure(context, { request, provider: flow.provider, error });
    return reply.redirect(errorUrl(flow.redirectTo, error), 302);
  }
}

/** The sign-in of a callback. @throws AppError as `takeFlow` */
async function findStarted(
  context: ProvidersContext,
  {
    parameters,
    browserSecret,
  }: { readonly parameters: URLSearchParams; readonly browserSecret: string | undefined },
  metadata: RequestMetadata,
) {
  const [state, ...otherStates] = parameters.getAll('state');
  if (state === undefined || otherStates.length > 0) throw errors.bad_oauth_state();
  const secrets = openSignIn(state, browserSecret, context.settings);
  if (secrets === undefined) throw errors.bad_oauth_state();
  const flow = await takeFlow(context, secrets.id, metadata);
  const connection = await context.providers.find(flow.provider);
  if (connection === undefined) throw errors.bad_oauth_state();
  return { flow, connection, secrets };
}

function successUrl(target: string, result: SignInResult): string {
  if (result.kind === 'code') return redirectUrl(target, { query: { code: result.code } });
  return redirectUrl(target, { session: sessionFragment(result.session) });
}

function reportFailure(
  { logger, metrics }: ProvidersContext,
  {
    request,
    provider,
    error,
  }: { readonly request: FastifyRequest; readonly provider: string; readonly error: unknown },
): void {
  const isRejected = isAppError(error) && error.httpStatus < 500;
  metrics.providerSignIns.inc({ provider, result: isRejected ? 'rejected' : 'failed' });
  const fields = { request_id: request.id, provider, err: error };
  if (isRejected) logger.info(fields, 'rejected sign-in at provider');
  else logger.warn(fields, 'sign-in at provider failed');
}

/** Errors that the user can do something about. */
const deniedCodes: readonly string[] = [
  'signup_disabled',
  'user_banned',
  'provider_email_needs_verification',
];

function errorUrl(target: string, error: unknown): string {
  const parameters = describe(error);
  return redirectUrl(target, { query: parameters, fragment: { ...fragmentMarker, ...parameters } });
}

/** The parameters of an error. Details of failures are only logged. */
function describe(error: unknown): Readonly<Record<string, string>> {
  if (error instanceof OAuthError)
    return { error: error.code, error_code: 'bad_oauth_callback', error_description: error.message };
  const shown = isAppError(error) ? error : errors.unexpected_failure();
  const name = oauthErrorNames[shown.httpStatus] ?? 'server_error';
  return {
    error: deniedCodes.includes(shown.code) ? 'access_denied' : name,
    error_code: shown.code,
    error_description: shown.message,
  };
}
