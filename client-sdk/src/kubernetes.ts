/**
 * Clients without a secret: the token that Kubernetes (or a cloud, or SPIFFE) puts into a file is the client's assertion.
 *
 * @module
 */
import type { ClientAssertionAuth } from './client-auth.ts';
import { ConfigurationError } from './errors.ts';
import { readTokenFile, type TokenFileOptions } from './node/token-file.ts';

export type { TokenFileOptions } from './node/token-file.ts';

/** Where a projected service account token usually is mounted in the manifests of this package. */
export const defaultServiceAccountTokenPath = '/var/run/secrets/tokens/token';

/** Assertion type of SPIFFE JWT-SVIDs, for servers that want them told apart. */
export const spiffeAssertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe';

/**
 * A Client's `clientAuth` from a projected service account token. The file is read anew for every request to the
 * authorization server, since the kubelet replaces it when 80 % of its life is over, at the latest after 24 hours; the
 * volume's `audience` must be what the authorization server expects.
 *
 * A missing file or an expired token is the TokenUnavailableError that is the cause of the request's error.
 *
 * @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2
 * @see https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken
 */
export function kubernetesServiceAccount(options: Partial<TokenFileOptions> = {}): ClientAssertionAuth {
  return tokenFileAssertion({ path: defaultServiceAccountTokenPath, ...options });
}

/** The same from any file that holds a JWT; `type` is sent as `client_assertion_type`, by default the one of RFC 7523. */
export function tokenFileAssertion(
  options: TokenFileOptions & { readonly type?: string },
): ClientAssertionAuth {
  const { type, ...file } = options;
  return {
    method: 'client_assertion',
    assertion: () => readTokenFile(file),
    ...(type !== undefined && { type }),
  };
}

/** A JWT-SVID that a SPIFFE helper writes into a file. */
export function spiffeSvidFile(options: TokenFileOptions): ClientAssertionAuth {
  return tokenFileAssertion({ ...options, type: spiffeAssertionType });
}

/** Variables in which the workload identity of clouds names its token file, in the order they are looked at. */
const tokenFileVariables = ['AZURE_FEDERATED_TOKEN_FILE', 'AWS_WEB_IDENTITY_TOKEN_FILE'] as const;

/**
 * A Client's `clientAuth` from the token file that the environment names: `AZURE_FEDERATED_TOKEN_FILE` or
 * `AWS_WEB_IDENTITY_TOKEN_FILE`. The environment is handed in: `workloadIdentity(process.env)`.
 *
 * @throws ConfigurationError when it names neither.
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
 * Reads the service account token itself, as the `subject_token` of a token exchange for example (RFC 8693 §2.1).
 *
 * @throws TokenUnavailableError as `kubernetesServiceAccount` does.
 */
export function readServiceAccountToken(options: Partial<TokenFileOptions> = {}): Promise<string> {
  return readTokenFile({ path: defaultServiceAccountTokenPath, ...options });
}
