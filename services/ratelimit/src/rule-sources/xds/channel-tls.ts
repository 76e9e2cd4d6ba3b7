import { checkServerIdentity } from 'node:tls';
import { ChannelCredentials } from '@grpc/grpc-js';
import type { Logger } from '@tollgate/kit/logger';
import { type TlsValidity, watchTlsFiles } from '@tollgate/kit/tls';

/** TLS towards a server; an empty path is no file. */
export interface ChannelTlsOptions {
  /** Our own certificate and key, for a server that wants one. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of the server's certificate; those of the system when empty. */
  readonly caFile: string;
  /** DNS name that the certificate must carry in the place of the host's; empty for that of the host. */
  readonly serverName: string;
}

/** Credentials that follow their files. */
export interface ChannelTls {
  /** Made of the files as they are now; for the next connection. */
  credentials(): ChannelCredentials;
  close(): void;
}

/** Credentials without TLS. */
export const plaintextChannel: ChannelTls = {
  credentials: () => ChannelCredentials.createInsecure(),
  close: () => undefined,
};

/** Reads the files and follows them. Rejects, naming the file, when they do not fit together. */
export async function watchChannelTls(
  options: ChannelTlsOptions,
  deps: { readonly logger: Logger; readonly onCertificate?: (validity: TlsValidity) => void },
): Promise<ChannelTls> {
  const { certFile, keyFile, caFile, serverName } = options;
  const verify = serverName === '' ? {} : { checkServerIdentity: identityCheck(serverName) };
  if (certFile === '' && caFile === '') {
    return { ...plaintextChannel, credentials: () => ChannelCredentials.createSsl(null, null, null, verify) };
  }
  const watched = await watchTlsFiles({ certFile, keyFile, caFile }, deps);
  return {
    credentials() {
      const { ca, key, cert } = watched.current();
      return ChannelCredentials.createSsl(ca ?? null, key ?? null, cert ?? null, verify);
    },
    close: watched.close,
  };
}

type IdentityCheck = typeof checkServerIdentity;

const identityCheck =
  (serverName: string): IdentityCheck =>
  (_host, certificate) =>
    checkServerIdentity(serverName, certificate);
