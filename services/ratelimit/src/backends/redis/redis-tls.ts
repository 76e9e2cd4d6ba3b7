import type { Settings } from '../../settings/settings.ts';
import { type StoreTls, type StoreTlsDeps, watchStoreTls } from '../watch-store-tls.ts';
import type { RedisTls } from './redis-connection.ts';

/** The settings that say with which certificates Redis is spoken to. */
export type RedisTlsSettings = Pick<
  Settings,
  'redisTlsCacert' | 'redisTlsClientCert' | 'redisTlsClientKey' | 'redisTlsSkipHostnameVerification'
>;

/**
 * Reads the files that the settings name, and follows them.
 *
 * @throws Error naming settings and file when they cannot be used.
 */
export async function watchRedisTls(
  settings: RedisTlsSettings,
  deps: StoreTlsDeps,
): Promise<StoreTls<RedisTls>> {
  const { current, close } = await watchStoreTls(
    'KVSTORE_TLS',
    {
      caFile: settings.redisTlsCacert,
      certFile: settings.redisTlsClientCert,
      keyFile: settings.redisTlsClientKey,
    },
    deps,
  );
  const verifyHostname = !settings.redisTlsSkipHostnameVerification;
  return { current: () => ({ context: current(), verifyHostname }), close };
}
