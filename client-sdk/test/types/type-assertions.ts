// What the types promise. Nothing here runs: it is checked by tsc, here and against the packed
// declarations.
import {
  type AccessToken,
  Client,
  type ClientAuth,
  type IdTokenClaims,
  OAuthClientError,
  OAuthError,
  type TokenFailure,
} from '@tollgate/oauth2-client';

/** `true` when the types are the same, `false` when not. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only for `true`. */
function holds<_Claim extends true>(): void {}

const client = new Client({ clientId: 'id', clientSecret: 'secret', site: 'https://as.example' });
const lenient = new Client({ clientId: 'id', site: 'https://as.example', throwOnError: false });

export async function tokens() {
  const token = await client.clientCredentials.getToken();
  holds<Same<typeof token, AccessToken>>();
  const outcome = await lenient.clientCredentials.getToken();
  holds<Same<typeof outcome, AccessToken | TokenFailure>>();
  const perCall = await client.clientCredentials.getToken({}, { throwOnError: false });
  holds<Same<typeof perCall, AccessToken | TokenFailure>>();
  holds<Same<typeof token.scope, readonly string[] | undefined>>();
  holds<Same<typeof token.expiresAt, number | undefined>>();
  // @ts-expect-error a token is immutable
  token.token = 'other';
  // @ts-expect-error a URL is no way to get a token by the client credentials grant
  client.clientCredentials.authorizationUrl();
  // @ts-expect-error the implicit grant gives its token to the callback
  client.implicit.getToken();
}

export async function signIn(request: Request) {
  const { transaction } = await client.authCode.startAuthorization({ scope: ['openid'], max_age: 60 });
  const token = await client.authCode.completeAuthorization(request, transaction);
  holds<Same<typeof token.idTokenClaims, IdTokenClaims | undefined>>();
  // @ts-expect-error a callback is no number
  await client.authCode.completeAuthorization(1, transaction);
}

export async function responses(token: AccessToken) {
  const unknownBody = await token.get('/me');
  holds<Same<typeof unknownBody.parsed, unknown>>();
  const typed = await token.get<{ user_name: string }>('/me');
  holds<Same<typeof typed.parsed, { user_name: string }>>();
  const standard = await token.fetch('https://as.example/me');
  holds<Same<typeof standard, Response>>();
}

export function errors(error: unknown) {
  if (error instanceof OAuthError) holds<Same<typeof error.code, string | undefined>>();
  if (error instanceof OAuthClientError && error.kind === 'OAUTH_CLIENT_TIMEOUT') return error.retryable;
  // @ts-expect-error kinds are a closed set
  return error instanceof OAuthClientError && error.kind === 'OAUTH_CLIENT_OTHER';
}

export const methods: readonly ClientAuth[] = [
  'client_secret_basic',
  'none',
  { method: 'client_assertion', assertion: () => 'jwt' },
  ({ headers, body }) => {
    headers.set('x-api-key', 'key');
    body.set('client_id', 'id');
  },
  // @ts-expect-error a signature needs a key and an algorithm
  { method: 'private_key_jwt' },
  // @ts-expect-error not a method
  'basic_auth',
];

// @ts-expect-error misspelt options are found
export const misspelt = new Client({ client_id: 'id' });
