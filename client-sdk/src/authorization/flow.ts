import { StateMismatchError } from '../errors.ts';
import type { WireParams } from '../http/options.ts';
import type { IdTokenCheck, IdTokenExpectation } from '../tokens/id-token-check.ts';
import type { TokenOutcome, TokenRequestOptions } from '../tokens/options.ts';
import {
  type AuthorizationCallback,
  type CheckAuthorizationOptions,
  checkAuthorizationCallback,
  readCallback,
} from './callback.ts';
import type { AuthorizationTransaction } from './start.ts';
import {
  prepareAuthorization,
  type StartAuthorizationDeps,
  type StartAuthorizationOptions,
  type StartedAuthorization,
} from './start.ts';

/** Options of a completion: those of the token request that it makes, and what is checked around it. */
export type CompleteAuthorizationOptions<Throws extends boolean = boolean> = CheckAuthorizationOptions &
  TokenRequestOptions<Throws> & {
    /** Further parameters of the token request, such as `resource`. */
    readonly params?: WireParams;
    /**
     * Checks the ID token instead of the client's own validator, such as `createIdTokenValidator` of `./id-token` with options of
     * yours. When it rejects, so does the completion. Given here, an ID token is required, whatever the scope.
     */
    readonly validateIdToken?: IdTokenCheck;
  };

/** What the flow needs of the client. */
export interface AuthorizationFlowDeps<Throws extends boolean> extends StartAuthorizationDeps {
  /** Whether callbacks must carry `iss`, unless the call says otherwise. */
  readonly issuerRequired: boolean;
  authorizationUrl(params: WireParams): string;
  redeem<T extends boolean = Throws>(
    code: string,
    params: WireParams,
    options: TokenRequestOptions<T>,
    idToken: IdTokenExpectation,
  ): Promise<TokenOutcome<T>>;
  /** @throws {ConfigurationError} when the client cannot validate ID tokens. */
  idTokenValidator(): Promise<IdTokenCheck>;
}

/** The authorization code flow from the first redirect to the token. */
export interface AuthorizationFlow<Throws extends boolean> {
  /**
   * Makes the URL to send the user's browser to, with state, PKCE and nonce, and the transaction to keep until the
   * user returns.
   *
   * @see RFC 6749 §4.1.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1
   */
  startAuthorization(params?: WireParams, options?: StartAuthorizationOptions): Promise<StartedAuthorization>;
  /**
   * Checks the callback against its transaction, which may be undefined when the session has none, and exchanges the code. Each transaction completes once: a callback
   * that is loaded again is refused before its code, by now spent, is sent. With scope `openid` the ID token is required and
   * checked, and its claims are the token's `idTokenClaims`.
   *
   * @throws {StateMismatchError | IssuerMismatchError | AuthorizationResponseError | ParseError} see `checkAuthorizationCallback`
   * @throws {ConfigurationError} when there will be an ID token that the client cannot check; the code is not sent then
   * @throws {IdTokenError | JwtError} when the ID token is not the one expected, whatever `throwOnError`
   * @see RFC 6749 §4.1.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.3
   */
  completeAuthorization<T extends boolean = Throws>(
    callback: AuthorizationCallback,
    transaction: AuthorizationTransaction | undefined,
    options?: CompleteAuthorizationOptions<T>,
  ): Promise<TokenOutcome<T>>;
}

/** States remembered as used: of older ones the codes have expired at the server (10 minutes, RFC 6749 §4.1.2). */
const MAXIMUM_USED_STATES = 1000;

/** Makes the authorization code flow of one client. */
export function createAuthorizationFlow<Throws extends boolean>(
  deps: AuthorizationFlowDeps<Throws>,
): AuthorizationFlow<Throws> {
  const usedStates = new Set<string>();

  return {
    async startAuthorization(params = {}, options) {
      const prepared = await prepareAuthorization(deps, params, options);
      return { url: deps.authorizationUrl(prepared.params), transaction: prepared.transaction };
    },

    async completeAuthorization<T extends boolean = Throws>(
      callback: AuthorizationCallback,
      transaction: AuthorizationTransaction | undefined,
      options: CompleteAuthorizationOptions<T> = {},
    ) {
      const { issuerRequired = deps.issuerRequired, params, validateIdToken, ...tokenOptions } = options;
      const received = await readCallback(callback);
      const checked = checkAuthorizationCallback(received, transaction, { issuerRequired });
      const { code, nonce, maxAgeSeconds } = checked;
      const validate = validateIdToken ?? (nonce === undefined ? undefined : await deps.idTokenValidator());
      claimState(usedStates, checked.state);
      // `Omit` over a generic is opaque to the compiler; what is left are the token request's options.
      const requestOptions = tokenOptions as unknown as TokenRequestOptions<T>;
      return await deps.redeem<T>(code, { ...params, ...checked.params }, requestOptions, {
        ...{ code, validate, isRequired: validate !== undefined },
        ...(nonce !== undefined && { nonce }),
        ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
      });
    },
  };
}

function claimState(usedStates: Set<string>, state: string): void {
  if (usedStates.has(state)) {
    throw new StateMismatchError(
      'this authorization was completed before; use the token it gave, or start again',
    );
  }
  usedStates.add(state);
  const [oldest] = usedStates;
  if (usedStates.size > MAXIMUM_USED_STATES && oldest !== undefined) usedStates.delete(oldest);
}
