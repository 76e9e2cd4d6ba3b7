import { type AccessToken, AuthorizationResponseError, Client, OAuthError } from '@tollgate/oauth2-client';
import { createMetadataSource, type MetadataSource } from '@tollgate/oauth2-client/discovery';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { requestedScopes } from '../scopes.ts';
import { type PendingSignIn, PendingSignIns } from './pending.ts';
import type { Person } from './sessions.ts';

/** How long a person may take at the auth server. */
export const pendingTtlMs = 10 * 60_000;

type FlowSettings = Pick<
  Settings,
  'authIssuer' | 'authUrl' | 'clientId' | 'clientSecret' | 'externalUrl' | 'scopes' | 'requestTimeoutMs'
>;

interface StartedSignIn {
  /** The URL of the auth server to send the browser to. */
  readonly url: string;
  readonly state: string;
  /** For `complete`: the browser keeps it. */
  readonly sealed: string;
}

/** The result of a callback. */
interface CompletedSignIn {
  readonly token: AccessToken;
  readonly person: Person;
  readonly returnTo: string;
  readonly isSecond: boolean;
}

/** Authorization code flow with PKCE. @see RFC 9700 §2.1.1 */
export class SignInFlow {
  readonly #settings: FlowSettings;
  readonly #nowMs: () => number;
  readonly #pending = new PendingSignIns();
  readonly #metadata: MetadataSource;
  readonly #fetch: typeof fetch;

  constructor(settings: FlowSettings, nowMs: () => number) {
    this.#settings = settings;
    this.#nowMs = nowMs;
    const { authIssuer: from, authUrl: to, requestTimeoutMs: timeoutMs } = settings;
    this.#fetch = (url, init) => fetch(toInternalUrl(String(url), { from, to }), init);
    this.#metadata = createMetadataSource(from, { fetch: this.#fetch, timeoutMs, ...trustedUrls });
  }

  /** Starts a sign-in that returns to a path. */
  async start(returnTo: string, isSecond = false): Promise<StartedSignIn> {
    const scope = ['email', ...requestedScopes(this.#settings.scopes)].join(' ');
    const client = await this.#discover();
    const { url, transaction } = await client.authCode.startAuthorization({ scope });
    const sealed = this.#pending.seal({ transaction, returnTo, startedMs: this.#nowMs(), isSecond });
    return { url, state: transaction.state, sealed };
  }

  /**
   * Exchanges the code of a callback.
   *
   * @param sealed what `start` returned, from the browser
   * @throws AppError `sign_in_failed`
   */
  async complete(query: URLSearchParams, sealed: string): Promise<CompletedSignIn> {
    const pending = this.#open(query.get('state') ?? '', sealed);
    if (pending === undefined)
      throw errors.sign_in_failed({
        message: 'The sign-in was started in another browser, or more than 10 minutes ago. Start again.',
      });
    const client = await this.#discover();
    try {
      const token = await client.authCode.completeAuthorization(query, pending.transaction);
      const { returnTo, isSecond } = pending;
      return { token, person: readPerson(token), returnTo, isSecond };
    } catch (cause) {
      throw describeFailure(cause);
    }
  }

  #open(state: string, sealed: string): PendingSignIn | undefined {
    const pending = this.#pending.open(state, sealed);
    if (pending === undefined) return undefined;
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
