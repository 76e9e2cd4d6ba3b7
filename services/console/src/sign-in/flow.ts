import {
  type AccessToken,
  AuthorizationResponseError,
  type AuthorizationTransaction,
  Client,
  OAuthError,
} from '@tollgate/oauth2-client';
import { createMetadataSource, type MetadataSource } from '@tollgate/oauth2-client/discovery';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { requestedScopes } from '../scopes.ts';
import type { Person } from './sessions.ts';

/** A sign-in between the redirect to the auth server and the callback. */
interface PendingSignIn {
  readonly transaction: AuthorizationTransaction;
  /** Path and query of the page that the person wanted. */
  readonly returnTo: string;
  /** Identifies the browser that has started it: the callback must come from the same one. */
  readonly browserId: string;
  readonly startedMs: number;
}

/** How long a person may take at the auth server. */
const pendingTtlMs = 10 * 60_000;

/** Anyone can start sign-ins: beyond this, the oldest is forgotten. */
const maxPending = 1000;

type FlowSettings = Pick<
  Settings,
  'authIssuer' | 'authUrl' | 'clientId' | 'clientSecret' | 'externalUrl' | 'scopes' | 'requestTimeoutMs'
>;

/** The result of a callback. */
interface CompletedSignIn {
  readonly token: AccessToken;
  readonly person: Person;
  readonly returnTo: string;
}

/** Authorization code flow with PKCE. @see RFC 9700 §2.1.1 */
export class SignInFlow {
  readonly #settings: FlowSettings;
  readonly #nowMs: () => number;
  readonly #pending = new Map<string, PendingSignIn>();
  readonly #metadata: MetadataSource;
  readonly #fetch: typeof fetch;

  constructor(settings: FlowSettings, nowMs: () => number) {
    this.#settings = settings;
    this.#nowMs = nowMs;
    const { authIssuer: from, authUrl: to, requestTimeoutMs: timeoutMs } = settings;
    this.#fetch = (url, init) => fetch(toInternalUrl(String(url), { from, to }), init);
    this.#metadata = createMetadataSource(from, { fetch: this.#fetch, timeoutMs, ...trustedUrls });
  }

  /** The URL of the auth server to send the browser to. */
  async start(browserId: string, returnTo: string): Promise<string> {
    const scope = ['email', ...requestedScopes(this.#settings.scopes)].join(' ');
    const client = await this.#discover();
    const { url, transaction } = await client.authCode.startAuthorization({ scope });
    this.#pending.set(transaction.state, { transaction, returnTo, browserId, startedMs: this.#nowMs() });
    const [oldest] = this.#pending.keys();
    if (this.#pending.size > maxPending && oldest !== undefined) this.#pending.delete(oldest);
    return url;
  }

  /** Exchanges the code of a callback. Works once. @throws AppError `sign_in_failed` */
  async complete(query: URLSearchParams, browserId: string | undefined): Promise<CompletedSignIn> {
    const pending = this.#take(query.get('state') ?? '', browserId);
    if (pending === undefined)
      throw errors.sign_in_failed({
        message: 'The sign-in was started in another browser, or more than 10 minutes ago. Start again.',
      });
    const client = await this.#discover();
    try {
      const token = await client.authCode.completeAuthorization(query, pending.transaction);
      return { token, person: readPerson(token), returnTo: pending.returnTo };
    } catch (cause) {
      throw describeFailure(cause);
    }
  }

  #take(state: string, browserId: string | undefined): PendingSignIn | undefined {
    const pending = this.#pending.get(state);
    if (pending === undefined || pending.browserId !== browserId) return undefined;
    this.#pending.delete(state);
    return this.#nowMs() - pending.startedMs > pendingTtlMs ? undefined : pending;
  }

  /** Without `jwksUri`: no ID token is asked for. */
  async #discover(): Promise<Client<true>> {
    const { authIssuer, clientId, clientSecret, externalUrl, requestTimeoutMs } = this.#settings;
    try {
      const metadata = await this.#metadata();
      const { authorization_endpoint: authorization, revocation_endpoint: revocation } = metadata;
      return new Client<true>({
        ...{ issuer: authIssuer, clientId, fetch: this.#fetch, timeoutMs: requestTimeoutMs, ...trustedUrls },
        redirectUri: `${externalUrl}/callback`,
        ...(clientSecret !== '' && { clientSecret }),
        ...(authorization !== undefined && { authorizationEndpoint: authorization }),
        ...(metadata.token_endpoint !== undefined && { tokenEndpoint: metadata.token_endpoint }),
        ...(revocation !== undefined && { revocationEndpoint: revocation }),
        authorizationResponseIssParameterSupported:
          metadata.authorization_response_iss_parameter_supported === true,
      });
    } catch (cause) {
      throw errors.sign_in_unavailable({ cause });
    }
  }
}

/** The operator configures the URLs, and a gateway may terminate TLS. */
const trustedUrls = { allowInsecure: true };

/** The metadata have public URLs, which this process may not reach. */
function toInternalUrl(url: string, { from, to }: { readonly from: string; readonly to: string }): string {
  return url.startsWith(`${from}/`) ? to + url.slice(from.length) : url;
}

/**
 * The claims are for display only, and the token comes from the token endpoint itself: the services
 * verify it.
 */
function readPerson({ token }: AccessToken): Person {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const { sub, email, phone } = payload as Readonly<Record<string, unknown>>; // Parsed boundary.
    const texts = [email, phone, sub].filter((claim) => typeof claim === 'string' && claim !== '');
    return { id: String(sub), name: String(texts[0]) };
  } catch (cause) {
    throw errors.sign_in_failed({ cause, detail: 'the access token is not a JWT' });
  }
}

function describeFailure(cause: unknown): Error {
  if (!(cause instanceof OAuthError || cause instanceof AuthorizationResponseError))
    return errors.sign_in_failed({ cause });
  const { code, description } = cause;
  const message =
    code === 'access_denied'
      ? 'You did not give the console access to your account. Start again to sign in.'
      : `The auth server refused the sign-in: ${code}${description === undefined ? '' : `, ${description}`}`;
  return errors.sign_in_failed({ cause, message });
}
