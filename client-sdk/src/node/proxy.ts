import { isIP } from 'node:net';
import { ConfigurationError } from '../errors.ts';

/** A parsed proxy URL. */
export interface ProxySettings {
  readonly protocol: 'http:' | 'https:';
  readonly hostname: string;
  readonly port: number;
  /**
   * The name in its certificate; empty for addresses. By default Node would use that of the target.
   */
  readonly servername: string;
  /** Value of Proxy-Authorization, if the URL has credentials. */
  readonly authorization: string | undefined;
  /** Whether a target is connected to directly. */
  bypasses(target: URL): boolean;
}

/**
 * Parses a proxy's URL.
 *
 * @throws ConfigurationError without the credentials, if it is not an http or https URL.
 */
export function parseProxy(proxy: string | URL, noProxy: readonly string[] = []): ProxySettings {
  const url = URL.parse(String(proxy));
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new ConfigurationError('proxy must be a URL that begins with http:// or https://');
  }
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const hostname = bareHostname(url.hostname);
  return {
    protocol: url.protocol,
    hostname,
    servername: isIP(hostname) === 0 ? hostname : '',
    port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
    authorization: credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`,
    bypasses: (target) => noProxy.some((pattern) => matches(pattern.trim().toLowerCase(), target)),
  };
}

/** Removes the brackets of IPv6 addresses in URLs. */
export function bareHostname(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

function matches(pattern: string, target: URL): boolean {
  if (pattern === '*') return true;
  if (pattern === '') return false;
  const port = target.port === '' ? (target.protocol === 'https:' ? '443' : '80') : target.port;
  const colon = /:\d+$/.exec(pattern);
  const isAddress = pattern.includes('::');
  const host = colon !== null && !isAddress ? pattern.slice(0, colon.index) : pattern;
  if (colon !== null && !isAddress && colon[0] !== `:${port}`) return false;
  const hostname = bareHostname(target.hostname);
  if (host.startsWith('.')) return hostname.endsWith(host);
  return hostname === bareHostname(host) || hostname.endsWith(`.${host}`);
}

/** A proxy from the environment, as options of `nodeTransport`. */
export interface EnvironmentProxy {
  proxy?: string;
  noProxy: string[];
}

/**
 * Reads HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY (the first that is set, lower case first):
 * `proxyFromEnvironment(process.env)`.
 */
export function proxyFromEnvironment(env: Readonly<Record<string, string | undefined>>): EnvironmentProxy {
  const read = (name: string) => env[name.toLowerCase()] || env[name] || undefined;
  const proxy = read('HTTPS_PROXY') ?? read('HTTP_PROXY') ?? read('ALL_PROXY');
  const noProxy = (read('NO_PROXY') ?? '').split(',').flatMap((entry) => entry.trim() || []);
  return { noProxy, ...(proxy !== undefined && { proxy }) };
}
