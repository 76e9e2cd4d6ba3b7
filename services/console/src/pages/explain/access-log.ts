import { describeResponse, parseAccessLog } from '@tollgate/policies/read/access-log';

/** The part of a request that Explain needs. */
interface LoggedRequest {
  readonly method: string;
  readonly url: string;
  /** IP address of the client, if the line has it. */
  readonly address: string;
  /** The response that Envoy logged. */
  readonly response: string;
}

/** Reads a line of Envoy's access log. Undefined for any other text, or without an authority. */
export function readAccessLog(line: string): LoggedRequest | undefined {
  const logged = parseAccessLog(line);
  if (logged === undefined || logged.authority === '') return undefined;
  const { method, path, authority, address = '' } = logged;
  const url = `https://${authority}${path.startsWith('/') ? path : `/${path}`}`;
  return URL.canParse(url) ? { method, url, address, response: describeResponse(logged) } : undefined;
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
