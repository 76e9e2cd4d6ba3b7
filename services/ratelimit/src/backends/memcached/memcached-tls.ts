import type { ConnectionOptions } from 'node:tls';
import { loadTlsFiles } from '@tollgate/kit/tls-files';
import type { Settings } from '../../settings/settings.ts';

/** What `tls.connect` takes besides the address. */
export type MemcachedTls = Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'checkServerIdentity'>;

/** The settings that say with which certificates memcached is spoken to. */
export type MemcachedTlsSettings = Pick<
  Settings,
  | 'memcacheTls'
  | 'memcacheTlsCacert'
  | 'memcacheTlsClientCert'
  | 'memcacheTlsClientKey'
  | 'memcacheTlsSkipHostnameVerification'
>;

/**
 * Reads the files that the settings name; undefined without TLS.
 *
 * @throws Error naming the file that cannot be used: at the start, not with every attempt to connect.
 */
export async function readMemcachedTls(settings: MemcachedTlsSettings): Promise<MemcachedTls | undefined> {
  if (!settings.memcacheTls) {
    return undefined;
  }
  const loaded = await loadTlsFiles({
    caFile: settings.memcacheTlsCacert,
    certFile: settings.memcacheTlsClientCert,
    keyFile: settings.memcacheTlsClientKey,
  });
  if (!loaded.ok) {
    throw new Error(`the files of MCACHE_TLS_… cannot be used: ${loaded.problem}`);
  }
  const { ca, cert, key } = loaded.material;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(settings.memcacheTlsSkipHostnameVerification ? { checkServerIdentity: () => undefined } : {}),
  };
}
