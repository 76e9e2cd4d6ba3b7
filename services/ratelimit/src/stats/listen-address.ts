/** Where to listen. Without a host: on all interfaces. */
export interface ListenAddress {
  readonly host: string | undefined;
  readonly port: number;
}

/**
 * Reads `host:port`, `:port` or `[IPv6]:port`, the form of `PULLMETRICS_ADDR`. Undefined when it is none of these or the
 * port is not 0 to 65535.
 */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text.trim());
  if (match === null) return undefined;
  const [, ipv6, host, digits] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  return { host: ipv6 ?? (host === '' ? undefined : host), port };
}
