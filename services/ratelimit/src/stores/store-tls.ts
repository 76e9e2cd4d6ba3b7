import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { type TlsFiles, type TlsMaterial, type TlsValidity, watchTlsFiles } from '@tollgate/kit/tls';

type TlsContext = Pick<TlsMaterial, 'ca' | 'cert' | 'key'>;

/**
 * Reads the TLS files of a store and follows their changes: new connections use a renewed
 * certificate. `onCertificate` is called with the validity of the client certificate, now and after
 * each change.
 *
 * @param prefix of the settings that name the files: `KVSTORE_TLS`.
 * @throws Error naming settings and file when they cannot be used.
 */
export async function watchStoreTls(
  prefix: string,
  files: TlsFiles,
  options: { readonly logger: Logger; readonly onCertificate?: (validity: TlsValidity) => void },
): Promise<{ current(): TlsContext; close(): void }> {
  const hasFiles = Object.values(files).some((path) => path !== '');
  if (!hasFiles) return { current: () => ({}), close: () => undefined };
  try {
    const watched = await watchTlsFiles(files, options);
    return {
      current() {
        const { cert, key, ca } = watched.current();
        return { ...(cert && { cert }), ...(key && { key }), ...(ca && { ca }) };
      },
      close: () => watched.close(),
    };
  } catch (cause) {
    const settings = `${prefix}_CACERT, ${prefix}_CLIENT_CERT and ${prefix}_CLIENT_KEY`;
    const problem = getErrorMessage(cause);
    throw new Error(`the files of ${settings} cannot be used: ${problem}`, { cause });
  }
}
