/** A request as a line of Envoy's access log has it. */
export interface LoggedRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Empty where the line does not have it. */
  readonly authority: string;
  /** The address that Envoy got the request from, if the line has it. */
  readonly address: string | undefined;
  /** Undefined where no response was sent. */
  readonly status: number | undefined;
  readonly flags: readonly string[];
}

/**
 * Reads a line in the default text format of Envoy, in that of Istio, or in JSON with the usual
 * names. Undefined for any other text.
 *
 * @see https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage
 */
export function parseAccessLog(line: string): LoggedRequest | undefined {
  const text = line.trim();
  return text.startsWith('{') ? parseJsonLine(text) : parseTextLine(text);
}

/** `[time] "GET /path HTTP/2" 200 - …`, then quoted texts; before it, perhaps `<pod> | `. */
const textForm =
  /^(?:\S+ \| ?)?\[[^\]]*\] "(?<method>\S+) (?<path>\S+) [^"]*" (?<status>\d+|-) (?<flags>\S+)(?<rest> .*)?$/;

function parseTextLine(text: string): LoggedRequest | undefined {
  const { method, path, status = '', flags = '', rest = '' } = textForm.exec(text)?.groups ?? {};
  if (method === undefined || path === undefined) return undefined;
  // The last are X-Forwarded-For, user agent, request id, authority and upstream, in all formats.
  const quoted = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, value = '']) => value);
  return toRequest({ method, path, status, flags, authority: quoted.at(-2), addresses: quoted.at(-5) });
}

function parseJsonLine(text: string): LoggedRequest | undefined {
  const fields = readFields(text);
  const find = (...names: readonly string[]): string | undefined =>
    names
      .map((name) => fields.get(name))
      .find((value) => value !== undefined && value !== '' && value !== '-');
  const method = find('method', 'request-method');
  const path = find('x-envoy-origin-path', 'x-envoy-original-path', 'path', 'request-path');
  if (method === undefined || path === undefined) return undefined;
  return toRequest({
    ...{ method, path, authority: find('authority', 'host') },
    addresses: find('x-forwarded-for', 'downstream-remote-address'),
    status: find('response-code', 'status') ?? '',
    flags: find('response-flags') ?? '',
  });
}

/** Values by names in lower case with dashes, as headers have them: formats differ in it. */
function readFields(text: string): ReadonlyMap<string, string> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return new Map();
  }
  if (typeof value !== 'object' || value === null) return new Map();
  return new Map(
    Object.entries(value).map(([name, field]) => [
      name.replace(/^:/, '').replaceAll('_', '-').toLowerCase(),
      String(field),
    ]),
  );
}

interface LoggedTexts {
  readonly method: string;
  readonly path: string;
  readonly status: string;
  readonly flags: string;
  readonly authority: string | undefined;
  /** Value of X-Forwarded-For, or an address with a port. */
  readonly addresses: string | undefined;
}

function toRequest({ method, path, status, flags, authority, addresses }: LoggedTexts): LoggedRequest {
  // Envoy adds the address of its client at the end.
  const address = addresses
    ?.split(',')
    .at(-1)
    ?.trim()
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1');
  const code = Number(status);
  return {
    ...{ method, path },
    authority: authority === undefined || authority === '-' ? '' : authority,
    address: address === '' || address === '-' ? undefined : address,
    status: Number.isInteger(code) && code > 0 ? code : undefined,
    flags: flags === '' || flags === '-' ? [] : flags.split(','),
  };
}

/** Flags that this product is the reason of. */
const flagTexts: Readonly<Record<string, string>> = {
  UAEX: 'denied by external authorization',
  RL: 'over a limit of the rate limit filter',
  RLSE: 'the rate limit service failed',
};

/** The response in words. */
export function describeResponse({ status, flags }: LoggedRequest): string {
  const texts = flags.map((flag) => (flagTexts[flag] === undefined ? flag : `${flag}: ${flagTexts[flag]}`));
  return [status === undefined ? 'no response' : String(status), ...texts].join(', ');
}
