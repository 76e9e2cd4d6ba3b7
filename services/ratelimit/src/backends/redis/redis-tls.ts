import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Settings } from '../../settings/settings.ts';
import type { RedisTls } from './redis-connection.ts';

/** The settings that say with which certificates Redis is spoken to. */
export type RedisTlsSettings = Pick<
  Settings,
  'redisTlsCacert' | 'redisTlsClientCert' | 'redisTlsClientKey' | 'redisTlsSkipHostnameVerification'
>;

/**
 * Reads the files that the settings name.
 *
 * @throws Error naming the setting whose file cannot be read, or all of them when they make no TLS together: at the
 *   start, not with every attempt to connect.
 */
export async function readRedisTls(settings: RedisTlsSettings): Promise<RedisTls> {
  const [ca, cert, key] = await Promise.all([
    readPem('KVSTORE_TLS_CACERT', settings.redisTlsCacert),
    readPem('KVSTORE_TLS_CLIENT_CERT', settings.redisTlsClientCert),
    readPem('KVSTORE_TLS_CLIENT_KEY', settings.redisTlsClientKey),
  ]);
  const context: SecureContextOptions = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
  requireUsable(context);
  return { context, verifyHostname: !settings.redisTlsSkipHostnameVerification };
}

async function readPem(variable: string, path: string): Promise<Buffer | undefined> {
  if (path === '') {
    return undefined;
  }
  try {
    return await readFile(path);
  } catch (cause) {
    throw new Error(`the file of ${variable} cannot be read: ${path}`, { cause });
  }
}

function requireUsable(context: SecureContextOptions): void {
  try {
    createSecureContext(context);
  } catch (cause) {
    const files = 'KVSTORE_TLS_CACERT, KVSTORE_TLS_CLIENT_CERT and KVSTORE_TLS_CLIENT_KEY';
    throw new Error(`the files of ${files} are no PEM certificates with their key`, { cause });
  }
}
