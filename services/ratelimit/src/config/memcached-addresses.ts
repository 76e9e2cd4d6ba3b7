export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Parses a server of MCACHE_HOST_PORT: `host:port`, `[::1]:port` or `:port` (this machine);
 * undefined when invalid.
 */
export function parseServerAddress(text: string): ServerAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/\s@[\]]*)):(\d{1,5})$/.exec(text);
  const host = match?.[1] || match?.[2] || 'localhost';
  const port = Number(match?.[3]);
  return port > 0 && port <= 65_535 ? { host, port } : undefined;
}

/** Whether a text has the form of an SRV name, `_service._proto.name`. */
export function isSrvName(name: string): boolean {
  return /^_[^.\s]+\._[^.\s]+\.\S+$/.test(name);
}
