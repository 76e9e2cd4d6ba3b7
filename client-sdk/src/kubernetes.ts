/**
 * Clients without a secret, which authenticate with a token file of Kubernetes, a cloud or SPIFFE.
 *
 * @module
 */
import type { ClientAssertionAuth } from './client-auth/methods.ts';
import { ConfigurationError } from './errors.ts';
import { assertTokenFileOptions, readTokenFile, type TokenFileOptions } from './node/token-file.ts';

export type { TokenFileOptions } from './node/token-file.ts';

/** Where the manifests of this package mount the projected service account token. */
export const defaultServiceAccountTokenPath = '/var/run/secrets/tokens/token';

/** Assertion type of SPIFFE JWT-SVIDs, for servers that distinguish them. */
export const spiffeAssertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe';

/**
 * A `clientAuth` that sends a projected service account token. The file is read for every request,
 * because the kubelet replaces it when 80 % of its lifetime is over, at the latest after 24 hours.
 * The volume's `audience` must be the one that the authorization server expects.
 *
 * For a missing file or an expired token, the cause of the request's error is a
 * TokenUnavailableError.
 *
 * @see https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken
 * @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2
 */
export function kubernetesServiceAccount(options: Partial<TokenFileOptions> = {}): ClientAssertionAuth {
  return tokenFileAssertion({ path: defaultServiceAccountTokenPath, ...options });
}

/**
 * A `clientAuth` that sends the JWT in a file; `type` is the `client_assertion_type`, by default
 * that of RFC 7523.
 */
export function tokenFileAssertion(
  options: TokenFileOptions & { readonly type?: string },
): ClientAssertionAuth {
  const { type, ...file } = options;
  assertTokenFileOptions(file);
  return {
    method: 'client_assertion',
    assertion: () => readTokenFile(file),
    ...(type !== undefined && { type }),
  };
}

/** A `clientAuth` that sends a JWT-SVID which a SPIFFE helper writes into a file. */
export function spiffeSvidFile(options: TokenFileOptions): ClientAssertionAuth {
  return tokenFileAssertion({ ...options, type: spiffeAssertionType });
}

/** Variables that name the token file of a cloud's workload identity, in order. */
const tokenFileVariables = ['AZURE_FEDERATED_TOKEN_FILE', 'AWS_WEB_IDENTITY_TOKEN_FILE'] as const;

/**
 * A `clientAuth` that sends the token file named by `AZURE_FEDERATED_TOKEN_FILE` or
 * `AWS_WEB_IDENTITY_TOKEN_FILE`: `workloadIdentity(process.env)`.
 *
 * @throws ConfigurationError if neither is set.
 */
export function workloadIdentity(
  env: Readonly<Record<string, string | undefined>>,
  options: Omit<TokenFileOptions, 'path'> = {},
): ClientAssertionAuth {
  const path = tokenFileVariables
    .map((name) => env[name])
    .find((value) => value !== undefined && value !== '');
  if (path === undefined) {
    throw new ConfigurationError(
      `the environment names no token file: set ${tokenFileVariables.join(' or ')}`,
    );
  }
  return tokenFileAssertion({ ...options, path });
}

/**
 * Reads the service account token, for example as the `subject_token` of a token exchange (RFC 8693
 * §2.1).
 *
 * @throws TokenUnavailableError as `kubernetesServiceAccount` does.
 */
export function readServiceAccountToken(options: Partial<TokenFileOptions> = {}): Promise<string> {
  return readTokenFile({ path: defaultServiceAccountTokenPath, ...options });
}
