// Promises of the types. Nothing here runs: it is checked by tsc, here and against the packed
// declarations.
import {
  type AccessToken,
  Client,
  type ClientAuth,
  type IdTokenClaims,
  OAuthClientError,
  OAuthError,
  type RequestOptions,
  type TokenFailure,
} from '@tollgate/oauth2-client';
import { discoverClient } from '@tollgate/oauth2-client/discovery';
import { TokenManager } from '@tollgate/oauth2-client/token-manager';

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
  const query: { [name: string]: undefined | string | string[] | object } = {};
  await client.authCode.completeAuthorization(query, transaction);
  // @ts-expect-error a callback is no number
  await client.authCode.completeAuthorization(1, transaction);
}

export async function responses(token: AccessToken) {
  const unknownBody = await token.get('/me');
  holds<Same<typeof unknownBody.parsed, unknown>>();
  const standard = await token.fetch('https://as.example/me');
  holds<Same<typeof standard, Response>>();
}

type Order = { orderId: string; orderLines?: { unitPrice: number }[] };
type ConvertedOrder = { order_id: string; order_lines?: { unit_price: number }[] };

export async function keysOfResponses(token: AccessToken) {
  const converted = await token.get<Order>('/orders/1');
  holds<Same<typeof converted.parsed, ConvertedOrder>>();
  // @ts-expect-error its key is order_id
  converted.parsed.orderId.length;
  const preserved = await token.get<Order>('/orders/1', { keyCase: 'preserve' });
  holds<Same<typeof preserved.parsed, Order>>();
  const shaped = await token.get<Order>('/orders/1', { parsedFactory: (parsed) => parsed });
  holds<Same<typeof shaped.parsed, Order>>();
  const options: RequestOptions = {};
  const either = await token.post<Order>('/orders', options);
  holds<Same<typeof either.parsed, Order | ConvertedOrder>>();
  const list = await token.request<readonly Order[]>('GET', '/orders');
  holds<Same<typeof list.parsed, readonly ConvertedOrder[]>>();
  const alike = await token.get<{ user_name: string }>('/me');
  holds<Same<typeof alike.parsed, { user_name: string }>>();
  const direct = await client.request<Order>('GET', '/orders/1');
  holds<Same<typeof direct.parsed, ConvertedOrder>>();
}

export async function keysOfAClient() {
  const preserving = new Client({ clientId: 'id', site: 'https://as.example', keyCase: 'preserve' });
  const token = await preserving.clientCredentials.getToken();
  const preserved = await token.get<Order>('/orders/1');
  holds<Same<typeof preserved.parsed, Order>>();
  const refreshed = await (await token.refresh()).get<Order>('/orders/1');
  holds<Same<typeof refreshed.parsed, Order>>();
  const direct = await preserving.request<Order>('GET', '/orders/1');
  holds<Same<typeof direct.parsed, Order>>();
  const acquire = () => preserving.clientCredentials.getToken();
  const managed = await new TokenManager({ client: preserving, acquire }).getToken();
  const fromManager = await managed.get<Order>('/orders/1');
  holds<Same<typeof fromManager.parsed, Order>>();
  const discovered = await discoverClient('https://as.example', { clientId: 'id', keyCase: 'preserve' });
  holds<Same<typeof discovered, typeof preserving>>();
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
