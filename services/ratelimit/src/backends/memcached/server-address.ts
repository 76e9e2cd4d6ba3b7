/** Where a memcached listens. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Reads one server of MCACHE_HOST_PORT, `host:port` or `[::1]:port`; undefined when it is none. */
export function parseServerAddress(text: string): ServerAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/\s@[\]]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host !== undefined && port > 0 && port <= 65_535 ? { host, port } : undefined;
}
