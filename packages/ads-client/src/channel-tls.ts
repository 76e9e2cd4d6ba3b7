import { checkServerIdentity } from 'node:tls';
import { ChannelCredentials } from '@grpc/grpc-js';
import type { Logger } from '@tollgate/kit/logger';
import { type TlsValidity, watchTlsFiles } from '@tollgate/kit/tls';

/** TLS to a server; an empty path means no file. */
export interface ChannelTlsOptions {
  /** Client certificate and key. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of the server's certificate; those of the system when empty. */
  readonly caFile: string;
  /** DNS name that the certificate must have instead of the host; empty for the host. */
  readonly serverName: string;
}

export interface ChannelTls {
  /** Credentials of the next connection. */
  credentials(): ChannelCredentials;
  close(): void;
}

export const plaintextChannel: ChannelTls = {
  credentials: () => ChannelCredentials.createInsecure(),
  close: () => undefined,
};

/** Reads the files and follows them. Rejects, naming the file, when they are invalid. */
export async function watchChannelTls(
  options: ChannelTlsOptions,
  watchOptions: { readonly logger: Logger; readonly onCertificate?: (validity: TlsValidity) => void },
): Promise<ChannelTls> {
  const { certFile, keyFile, caFile, serverName } = options;
  const verify = serverName === '' ? {} : { checkServerIdentity: createIdentityCheck(serverName) };
  if (certFile === '' && caFile === '') {
    return { ...plaintextChannel, credentials: () => ChannelCredentials.createSsl(null, null, null, verify) };
  }
  const watched = await watchTlsFiles({ certFile, keyFile, caFile }, watchOptions);
  return {
    credentials() {
      const { ca, key, cert } = watched.current();
      return ChannelCredentials.createSsl(ca ?? null, key ?? null, cert ?? null, verify);
    },
    close: () => watched.close(),
  };
}

function createIdentityCheck(serverName: string): typeof checkServerIdentity {
  return (_host, certificate) => checkServerIdentity(serverName, certificate);
}
