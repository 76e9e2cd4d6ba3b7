import { compareText, hostAndPort } from '@tollgate/kit/text';

/** Where a memcached listens. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Reads one server of MCACHE_HOST_PORT, `host:port`, `[::1]:port` or `:port` (this machine); undefined when it is none. */
export function parseServerAddress(text: string): ServerAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/\s@[\]]*)):(\d{1,5})$/.exec(text);
  const host = match?.[1] || match?.[2] || 'localhost';
  const port = Number(match?.[3]);
  return port > 0 && port <= 65_535 ? { host, port } : undefined;
}

/** Asks the DNS for SRV records, as `dns.promises.Resolver` does. */
export type ResolveSrv = (
  name: string,
) => Promise<readonly { readonly name: string; readonly port: number }[]>;

/** Whether a text has the form of an SRV record's name, `_service._proto.name`. */
export function isSrvName(name: string): boolean {
  return /^_[^.\s]+\._[^.\s]+\.\S+$/.test(name);
}

/**
 * The servers that an SRV record names, `host:port`, in the order in which envoyproxy/ratelimit has them: sorted by
 * their text with the dot at the end of the host name. The order decides which server holds a counter.
 *
 * @throws Error that names the record when it cannot be resolved or names no server.
 */
export async function findServers(srv: string, resolveSrv: ResolveSrv): Promise<readonly string[]> {
  const records = await resolve(srv, resolveSrv);
  const found = records
    // A lone dot, which the resolver makes an empty name, says that there is no such service (RFC 2782).
    .filter(({ name }) => name !== '')
    .map(({ name, port }) => ({ rank: `${name}.:${port}`, address: hostAndPort(name, port) }))
    .sort((a, b) => compareText(a.rank, b.rank))
    .map(({ address }) => address);
  if (found.length === 0) {
    throw new Error(`the SRV record ${srv} (MCACHE_SRV) names no server`);
  }
  return found;
}

async function resolve(srv: string, resolveSrv: ResolveSrv): ReturnType<ResolveSrv> {
  try {
    return await resolveSrv(srv);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`the SRV record ${srv} (MCACHE_SRV) could not be resolved: ${why}`, { cause });
  }
}
