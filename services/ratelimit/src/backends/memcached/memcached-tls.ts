import type { ConnectionOptions } from 'node:tls';
import type { Settings } from '../../settings/settings.ts';
import { type StoreTls, type StoreTlsDeps, watchStoreTls } from '../watch-store-tls.ts';

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
 * Reads the files that the settings name, and follows them; undefined without TLS.
 *
 * @throws Error naming settings and file when they cannot be used.
 */
export async function watchMemcachedTls(
  settings: MemcachedTlsSettings,
  deps: StoreTlsDeps,
): Promise<StoreTls<MemcachedTls> | undefined> {
  if (!settings.memcacheTls) {
    return undefined;
  }
  const { current, close } = await watchStoreTls(
    'MCACHE_TLS',
    {
      caFile: settings.memcacheTlsCacert,
      certFile: settings.memcacheTlsClientCert,
      keyFile: settings.memcacheTlsClientKey,
    },
    deps,
  );
  const identity = settings.memcacheTlsSkipHostnameVerification
    ? { checkServerIdentity: () => undefined }
    : {};
  return { current: () => ({ ...current(), ...identity }), close };
}
