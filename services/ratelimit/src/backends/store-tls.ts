import type { Logger } from '@tollgate/kit/logger';
import { type TlsFiles, type TlsMaterial, type TlsValidity, watchTlsFiles } from '@tollgate/kit/tls';

/** What new connections to a store are made with, as long as its files are followed. */
export interface StoreTls<T> {
  current(): T;
  /** Ends the watch; idempotent. */
  close(): void;
}

/** Where problems and the expiry of the client certificate are reported. */
export interface StoreTlsDeps {
  readonly logger: Logger;
  /** Called with the validity of the client certificate in use, now and after each change. */
  readonly onCertificate?: (validity: TlsValidity) => void;
}

/**
 * Reads the files with which a store is spoken to, and follows their changes: a certificate that is renewed is used by the
 * connections made from then on.
 *
 * @param prefix of the settings that name the files: `KVSTORE_TLS`.
 * @throws Error naming settings and file when they cannot be used: at the start, not with every attempt to connect.
 */
export async function watchStoreTls(
  prefix: string,
  files: TlsFiles,
  deps: StoreTlsDeps,
): Promise<StoreTls<Pick<TlsMaterial, 'ca' | 'cert' | 'key'>>> {
  const hasFiles = Object.values(files).some((path) => path !== '');
  if (!hasFiles) return { current: () => ({}), close: () => undefined };
  try {
    const watched = await watchTlsFiles(files, deps);
    return {
      current() {
        const { cert, key, ca } = watched.current();
        return { ...(cert && { cert }), ...(key && { key }), ...(ca && { ca }) };
      },
      close: () => watched.close(),
    };
  } catch (cause) {
    const settings = `${prefix}_CACERT, ${prefix}_CLIENT_CERT and ${prefix}_CLIENT_KEY`;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`the files of ${settings} cannot be used: ${problem}`, { cause });
  }
}
