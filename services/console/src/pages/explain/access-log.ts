/** The part of a request that Explain needs. */
interface LoggedRequest {
  readonly method: string;
  readonly url: string;
  /** The status that Envoy logged. */
  readonly status: string | undefined;
}

/**
 * Reads a line of Envoy's access log: the default format, or JSON with the names that Envoy's docs
 * use. Undefined when it is neither.
 *
 * @see https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage
 */
export function readAccessLog(line: string): LoggedRequest | undefined {
  const text = line.trim();
  return text.startsWith('{') ? readJson(text) : readDefaultFormat(text);
}

function readDefaultFormat(text: string): LoggedRequest | undefined {
  const [, method, path, status] = /"([A-Z]+) (\S+) HTTP\/[\d.]+" (\d{3})\b/.exec(text) ?? [];
  // The last quoted texts are: X-Forwarded-For, user agent, request id, authority, upstream.
  const authority = [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, value = '']) => value).at(-2);
  if (method === undefined || path === undefined || authority === undefined) return undefined;
  return toRequest({ method, path, authority, status });
}

function readJson(text: string): LoggedRequest | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return undefined;
  }
  const values = new Map(Object.entries(Object(fields)).map(([name, value]) => [name, String(value)]));
  const find = (...names: readonly string[]) =>
    names.map((name) => values.get(name)).find((value) => value !== undefined);
  const method = find('method', ':method', 'request_method');
  const path = find('x-envoy-original-path', 'path', ':path', 'request_path');
  const authority = find('authority', ':authority', 'host');
  if (method === undefined || path === undefined || authority === undefined) return undefined;
  return toRequest({ method, path, authority, status: find('response_code', 'status') });
}

function toRequest({
  method,
  path,
  authority,
  status,
}: {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly status: string | undefined;
}): LoggedRequest | undefined {
  const url = `https://${authority}${path.startsWith('/') ? path : `/${path}`}`;
  return URL.canParse(url) ? { method, url, status } : undefined;
}

/** Names of query parameters with credentials. */
const secretNames = /token|key|secret|password|code|signature|credential|assertion|auth|session|^sig$/i;

/** A URL without user, fragment and the values of query parameters that may be secrets. */
export function withoutSecrets(url: string): string {
  const [, scheme = '', rest = ''] = /^([a-z]+:\/\/)(?:[^/?#]*@)?([^#]*)/i.exec(url) ?? [];
  const [path = '', query] = rest.split(/\?(.*)/s);
  if (query === undefined) return scheme + path;
  const kept = query.split('&').map((parameter) => {
    const [name = ''] = parameter.split('=');
    return secretNames.test(decodeName(name)) ? `${name}=removed` : parameter;
  });
  return `${scheme}${path}?${kept.join('&')}`;
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
