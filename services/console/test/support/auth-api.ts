import { serviceKey } from '@tollgate/kit/service-key';
import { authServerSecret } from '@tollgate/testkit/services';

type JsonObject = Readonly<Record<string, unknown>>;

interface SendOptions {
  readonly method?: string;
  readonly body?: unknown;
  /** Bearer token. */
  readonly token?: string;
}

/** Sends a request with JSON, by default a POST. @throws Error for an answer that is not 2xx */
export async function sendJson(
  url: string,
  { method = 'POST', body, token }: SendOptions,
): Promise<JsonObject> {
  const response = await fetch(url, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return text === '' ? {} : JSON.parse(text);
}

/** Calls the admin API of an auth server of the testkit as an operator does. */
export function callAdmin(
  authUrl: string,
  { method, path, body }: { readonly method: string; readonly path: string; readonly body?: unknown },
): Promise<JsonObject> {
  return sendJson(authUrl + path, { method, body, token: serviceKey(authServerSecret) });
}
