import { getErrorMessage } from '@tollgate/kit/errors';
import { compareText, hostAndPort } from '@tollgate/kit/text';

/** Resolves SRV records, as `dns.promises.Resolver` does. */
export type ResolveSrv = (
  name: string,
) => Promise<readonly { readonly name: string; readonly port: number }[]>;

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
