/** Where a hook is served. */
export type HookEndpoint =
  | { readonly kind: 'http'; readonly url: string; readonly secrets: readonly Buffer[] }
  /** `call` is the qualified and quoted name of a function. */
  | { readonly kind: 'postgres'; readonly call: string };

type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly expected: string };

/** Hosts that stay on the machine, where TLS is not required. */
const localHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]', 'host.docker.internal'];

const identifier = '[a-zA-Z_][a-zA-Z0-9_]{0,62}';
const functionUri = new RegExp(`^pg-functions://[^/]*/(${identifier})/(${identifier})$`);

const uriForm =
  'https://…, http://… of this machine, or pg-functions://postgres/<schema>/<function>, without user and password';

/** Parses the URI of a hook. Only HTTP endpoints use `secrets`. */
export function parseEndpoint(uri: string, secrets: readonly Buffer[]): Parsed<HookEndpoint> {
  const [, schema, name] = functionUri.exec(uri) ?? [];
  if (schema !== undefined && name !== undefined)
    return {
      ok: true,
      value: { kind: 'postgres', call: `"${schema}"."${name}"` },
    };
  const url = URL.parse(uri);
  if (url === null || url.username !== '' || url.password !== '') return { ok: false, expected: uriForm };
  const isAllowed =
    url.protocol === 'https:' || (url.protocol === 'http:' && localHosts.includes(url.hostname));
  if (!isAllowed) return { ok: false, expected: uriForm };
  return { ok: true, value: { kind: 'http', url: url.href, secrets } };
}

const secretForm =
  'one or more secrets v1,whsec_<base64> of 24 to 64 bytes, separated by |, for example v1,whsec_ and the output of openssl rand -base64 32';

/**
 * Parses secrets in the format of Standard Webhooks. Payloads are signed with each, so that a
 * secret can be replaced without downtime.
 *
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function parseSecrets(text: string): Parsed<readonly Buffer[]> {
  const secrets = text.split('|').map((secret) => {
    const [, encoded] = /^v1,whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret.trim()) ?? [];
    return Buffer.from(encoded ?? '', 'base64');
  });
  return secrets.every(({ length }) => length >= 24 && length <= 64)
    ? { ok: true, value: secrets }
    : { ok: false, expected: secretForm };
}
