import { Resolver } from 'node:dns/promises';
import { backoffDelays } from '@tollgate/kit/backoff';
import { createFailureLog } from '@tollgate/kit/logger';
import type { Settings } from '../../settings/settings.ts';
import { createTlsStats } from '../../stats/certificate-stats.ts';
import { memcachedStatNames } from '../../stats/stats-names.ts';
import type { BackendDeps, BackendModule } from '../backend-module.ts';
import { findServers, type ResolveSrv } from './find-servers.ts';
import { createMemcachedBackend } from './memcached-backend.ts';
import { createMemcachedServer } from './memcached-server.ts';
import { createMemcachedStats } from './memcached-stats.ts';
import { watchMemcachedTls } from './memcached-tls.ts';
import { createServerList } from './server-list.ts';

/** Pauses between attempts to connect again: the first is short for a restart, the last bounds how much later we are back. */
const reconnect = { initialMs: 50, maxMs: 5_000, jitter: 0.5 };

/** How often and how long each DNS server is asked. */
const dns = { timeout: 2_000, tries: 2 };

/** What MCACHE_MAX_IDLE_CONNS is when it is 0. */
const defaultConnections = 2;

/** Makes the module with a way to resolve SRV records. */
export function memcachedModule(resolveSrv: ResolveSrv): BackendModule {
  return {
    async create(settings, deps) {
      const { stats, logger } = deps;
      const tls = await watchMemcachedTls(settings, {
        logger,
        onCertificate: (validity) => createTlsStats(stats).setValidity('memcached_client', validity),
      });
      const servers = createServerList(
        {
          find: serverNames(settings, resolveSrv),
          open: (address) =>
            createMemcachedServer(
              address,
              { reconnectDelayMs: backoffDelays({ ...reconnect, random: deps.random }), logger },
              {
                connections: settings.memcacheMaxIdleConnections || defaultConnections,
                timeoutMs: settings.memcacheTimeoutMs,
                tls: tls?.current,
              },
            ),
          logger,
        },
        settings.memcacheSrv === '' ? 0 : settings.memcacheSrvRefreshMs,
      );
      stats.gauge(memcachedStatNames.servers, () => servers.current().length);
      stats.gauge(
        memcachedStatNames.unreachableServers,
        () => servers.current().filter((server) => !server.isReachable()).length,
      );
      const backend = createMemcachedBackend({
        servers,
        stats: createMemcachedStats(stats),
        nowSeconds: deps.nowSeconds,
        onFailure: failureLog(deps),
      });
      return {
        ...backend,
        async close() {
          tls?.close();
          await backend.close();
        },
      };
    },
  };
}

/** BACKEND_TYPE=memcache. */
export const memcachedBackend: BackendModule = memcachedModule((name) => new Resolver(dns).resolveSrv(name));

function serverNames(
  { memcacheSrv, memcacheHostPort }: Settings,
  resolveSrv: ResolveSrv,
): () => Promise<readonly string[]> {
  return memcacheSrv === ''
    ? () => Promise.resolve(memcacheHostPort)
    : () => findServers(memcacheSrv, resolveSrv);
}

function failureLog({ logger }: BackendDeps): (error: unknown, server?: string) => void {
  const log = createFailureLog({ logger, message: 'memcached did not count; hits were let through' });
  return (error, memcached) => log(error, { memcached });
}
