import { AuthorizationResponseError, OAuthClientError } from '@tollgate/oauth2-client';
import { isUniqueViolation } from '../db/connection.ts';
import { errors, OAuthError, RetryLaterError } from '../errors.ts';
import { makeAuthCode } from '../flows/pkce.ts';
import type { CodeChallenge } from '../flows/store.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { ProviderConnection, SignedInUser, SignInFreshness } from '../identity-providers/connection.ts';
import { ProviderError } from '../identity-providers/provider.ts';
import { sendLink } from '../messages/links.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import type { User } from '../users/user.ts';
import {
  acceptInvite,
  findInvite,
  findOrCreateOwner,
  type IdentityOwner,
  linkToUser,
  type ProviderIdentity,
  toIdentity,
} from './account.ts';
import type { ProvidersContext } from './connections.ts';
import { type CallbackSecrets, newSignIn, signInLifeMs } from './flow.ts';
import type { StartedFlow } from './store.ts';

/** A request to sign in at a provider. */
export interface StartRequest {
  /** Validated. */
  readonly redirectTo: string;
  readonly challenge: CodeChallenge | undefined;
  readonly inviteToken: string;
  readonly scopes: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
  /** The user who links an identity. */
  readonly linkingUserId?: string | undefined;
  readonly freshness?: SignInFreshness | undefined;
}

/**
 * Stores a flow and returns the URL of the provider.
 *
 * @throws AppError `user_not_found` for an invitation that is not valid; `unexpected_failure` if
 * the provider's metadata cannot be loaded
 */
export async function startSignIn(
  context: ProvidersContext,
  connection: ProviderConnection,
  request: StartRequest & { readonly browserSecret: string },
  metadata: RequestMetadata,
): Promise<string> {
  const { inviteToken, scopes, parameters, browserSecret, freshness } = request;
  if (inviteToken !== '' && (await findInvite(context, inviteToken, metadata)) === undefined)
    throw errors.user_not_found({ message: 'User identified by token not found' });
  const { random, settings } = context;
  const { state, id, nonce, ...own } = newSignIn(random, browserSecret, settings);
  const usesPkce = !settings.dbSharedWithGotrue || connection.gotrueUsesPkce;
  const codeVerifier = usesPkce ? own.codeVerifier : undefined;
  const { url, requestToken = { token: '', secret: '' } } = await connection
    .start({ state, codeVerifier, nonce, scopes, parameters, freshness })
    .catch((cause: unknown) => {
      context.metrics.providerSignIns.inc({ provider: connection.name, result: 'failed' });
      throw errors.unexpected_failure({ message: 'Unable to reach the external provider', cause });
    });
  const { redirectTo, challenge, linkingUserId } = request;
  const flow = {
    id,
    provider: connection.name,
    redirectTo,
    challenge,
    inviteToken,
    linkingUserId,
    requestToken,
    emailOptional: connection.emailOptional,
    ...(settings.dbSharedWithGotrue && { codeVerifier }),
  };
  await context.store.providers.start(flow, new Date(metadata.nowMs));
  return url;
}

/**
 * Takes the flow of a callback, which spends its state.
 *
 * @throws AppError `flow_state_already_used` until the code of a used state is exchanged;
 * `bad_oauth_state` for a state that is unknown, expired, or of another browser
 */
export async function takeFlow(
  { store }: ProvidersContext,
  id: string,
  { nowMs }: RequestMetadata,
): Promise<StartedFlow> {
  const flow = await store.providers.take(id);
  if (flow === undefined && (await store.providers.isSpent(id))) throw errors.flow_state_already_used();
  if (flow === undefined || flow.createdAt.getTime() + signInLifeMs <= nowMs) throw errors.bad_oauth_state();
  return flow;
}

/** A session, or a code that the client exchanges for one. */
export type SignInResult =
  | { readonly kind: 'session'; readonly session: IssuedSession }
  | { readonly kind: 'code'; readonly code: string };

/**
 * Completes a sign-in: exchanges the provider's code, finds the user, and starts a session or
 * issues a code.
 *
 * @throws OAuthError as the provider refused; AppError as `findOrCreateOwner`, `acceptInvite` and
 * `linkToUser`, and `provider_email_needs_verification`
 */
export async function finishSignIn(
  context: ProvidersContext,
  connection: ProviderConnection,
  callback: {
    readonly flow: StartedFlow;
    readonly secrets: CallbackSecrets;
    readonly parameters: URLSearchParams;
  },
  metadata: RequestMetadata,
): Promise<SignInResult> {
  const { flow, parameters, secrets } = callback;
  const state = parameters.get('state') ?? '';
  const { nonce, codeVerifier = flow.codeVerifier } = secrets;
  const signedIn = await connection
    .finish({ parameters, state, codeVerifier, nonce, requestToken: flow.requestToken })
    .catch((thrown: unknown) => {
      throw toCallbackError(thrown);
    });
  const identity = toIdentity(connection.name, signedIn.profile);
  const { linkingUserId, inviteToken } = flow;
  const owner = await findOwner(context, connection, { identity, linkingUserId, inviteToken }, metadata);
  // The account is kept even if it must be confirmed first.
  if (owner.mustConfirm) return refuseUnconfirmed(context, { flow, user: owner.user }, metadata);
  return issue(context, { flow, signedIn, owner }, metadata);
}

/** Concurrent first sign-ins create the same identity: the second attempt finds it. */
async function retryOnce<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    return await work();
  }
}

function toCallbackError(thrown: unknown): Error {
  if (thrown instanceof AuthorizationResponseError)
    return new OAuthError(thrown.code ?? 'server_error', thrown.description ?? 'The provider refused');
  if (thrown instanceof ProviderError)
    return errors.unexpected_failure({
      message: 'Error getting user profile from external provider',
      cause: thrown,
    });
  if (thrown instanceof OAuthClientError)
    return errors.unexpected_failure({ message: 'Unable to exchange external code', cause: thrown });
  return errors.unexpected_failure({ cause: thrown });
}

/** The user of an identity: who links it, is invited, has it, or is created. */
export async function findOwner(
  context: ProvidersContext,
  { emailOptional }: Pick<ProviderConnection, 'emailOptional'>,
  {
    identity,
    linkingUserId,
    inviteToken = '',
  }: {
    readonly identity: ProviderIdentity;
    readonly linkingUserId: string | undefined;
    readonly inviteToken?: string;
  },
  metadata: RequestMetadata,
): Promise<IdentityOwner> {
  if (linkingUserId !== undefined) return linkToUser(context, identity, linkingUserId, metadata);
  if (inviteToken !== '') {
    const user = await acceptInvite(context, identity, inviteToken, metadata);
    return { user, mustConfirm: false };
  }
  return retryOnce(() => findOrCreateOwner(context, identity, { emailOptional }, metadata));
}

async function issue(
  context: ProvidersContext,
  {
    flow,
    signedIn,
    owner: { user },
  }: { readonly flow: StartedFlow; readonly signedIn: SignedInUser; readonly owner: IdentityOwner },
  metadata: RequestMetadata,
): Promise<SignInResult> {
  const { challenge, provider } = flow;
  if (challenge === undefined) {
    const signIn = { user, method: 'oauth', traits: { provider } };
    const session = await startSession(context, signIn, metadata);
    return { kind: 'session', session: { ...session, providerTokens: signedIn.tokens } };
  }
  const code = makeAuthCode(context);
  const at = new Date(metadata.nowMs);
  const earlier = earlierSignIn(context, flow, signedIn);
  if (earlier !== undefined)
    await context.store.authentications.note(
      flow.id,
      { authenticated_at: earlier, aal: 'aal1', methods: ['oauth'] },
      at,
    );
  await context.store.providers.issueCode({
    ...challenge,
    ...{ id: flow.id, code, userId: user.id, provider, tokens: signedIn.tokens, at },
  });
  return { kind: 'code', code };
}

/** Clocks differ. */
const clockToleranceMs = 60_000;

/**
 * When the user has signed in at the provider, if that was before this sign-in started: clients of
 * the OAuth server may need a later one.
 */
function earlierSignIn(
  { settings }: ProvidersContext,
  flow: StartedFlow,
  { authenticatedAt: at }: SignedInUser,
): Date | undefined {
  if (at === undefined || !settings.oauthServerEnabled) return undefined;
  return at.getTime() < flow.createdAt.getTime() - clockToleranceMs ? at : undefined;
}

/**
 * Mails a confirmation link to a user whose email the provider has not verified.
 *
 * @throws AppError `provider_email_needs_verification`
 */
export async function refuseUnconfirmed(
  context: ProvidersContext,
  { flow, user }: { readonly flow: Pick<StartedFlow, 'provider' | 'redirectTo'>; readonly user: User },
  metadata: RequestMetadata,
): Promise<never> {
  const { provider, redirectTo } = flow;
  const failure = { method: 'oauth', reason: 'provider_email_needs_verification', provider };
  recordFailedSignIn(context, user, failure, metadata);
  if (user.email === '')
    throw errors.provider_email_needs_verification({
      message: `Unverified email with ${provider}. Verify the email with ${provider} in order to sign in`,
    });
  try {
    await sendLink(context, user, { kind: 'confirmation', redirectTo, flow: 'implicit' }, metadata);
  } catch (error) {
    // The link that was sent shortly before is still valid.
    if (!(error instanceof RetryLaterError)) throw error;
  }
  throw errors.provider_email_needs_verification({
    message: `Unverified email with ${provider}. A confirmation email has been sent to your ${provider} email`,
  });
}
