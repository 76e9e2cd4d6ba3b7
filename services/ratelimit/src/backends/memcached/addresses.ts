import { getErrorMessage } from '@tollgate/kit/errors';
import { compareText, hostAndPort } from '@tollgate/kit/text';

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

/** Resolves SRV records, as `dns.promises.Resolver` does. */
export type ResolveSrv = (
  name: string,
) => Promise<readonly { readonly name: string; readonly port: number }[]>;

/** Whether a text has the form of an SRV name, `_service._proto.name`. */
export function isSrvName(name: string): boolean {
  return /^_[^.\s]+\._[^.\s]+\.\S+$/.test(name);
}

/**
 * The servers of an SRV record, `host:port`, sorted as envoyproxy/ratelimit sorts them: by their
 * text with the trailing dot of the host name. The order decides which server holds a counter.
 *
 * @throws Error naming the record when it cannot be resolved or names no server.
 */
export async function resolveServers(srv: string, resolveSrv: ResolveSrv): Promise<readonly string[]> {
  const records = await resolve(srv, resolveSrv);
  const servers = records
    // A lone dot, which the resolver returns as an empty name, means that the service does not
    // exist (RFC 2782).
    .filter(({ name }) => name !== '')
    .map(({ name, port }) => ({ sortKey: `${name}.:${port}`, address: hostAndPort(name, port) }))
    .sort((a, b) => compareText(a.sortKey, b.sortKey))
    .map(({ address }) => address);
  if (servers.length === 0) {
    throw new Error(`the SRV record ${srv} (MCACHE_SRV) names no server`);
  }
  return servers;
}

async function resolve(srv: string, resolveSrv: ResolveSrv): ReturnType<ResolveSrv> {
  try {
    return await resolveSrv(srv);
  } catch (cause) {
    const reason = getErrorMessage(cause);
    throw new Error(`the SRV record ${srv} (MCACHE_SRV) could not be resolved: ${reason}`, { cause });
  }
}
