import { experimental, ServerCredentials } from '@grpc/grpc-js';
import type { Logger } from '../logger.ts';
import { type TlsMaterial, type TlsValidity, type WatchedTls, watchTlsFiles } from '../tls.ts';

/** TLS files of a server; an empty path is no file. */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of client certificates. When set, clients must present a certificate. */
  readonly clientCaFile: string;
}

/** Options of watched credentials. */
export interface ServerCredentialsOptions {
  readonly logger: Logger;
  /** Called after every attempt to load the files, including the first one. */
  readonly onAttempt: (succeeded: boolean) => void;
  /** Called with the validity of the certificate in use, now and after each change. */
  readonly onCertificate?: (validity: TlsValidity) => void;
  /** Unix time in milliseconds. Default `Date.now`. */
  readonly nowMs?: () => number;
}

/** Credentials that follow their files. */
export interface WatchedCredentials {
  readonly credentials: ServerCredentials;
  close(): void;
}

/** Credentials of a server without TLS. */
export function plaintextCredentials(): WatchedCredentials {
  return { credentials: ServerCredentials.createInsecure(), close: () => undefined };
}

/**
 * Reads the files and creates credentials from them. After a change, new connections get the new
 * certificate; open ones keep theirs. Rejects, naming the file, when the files are not consistent.
 */
export async function watchServerCredentials(
  files: ServerTlsFiles,
  options: ServerCredentialsOptions,
): Promise<WatchedCredentials> {
  const { certFile, keyFile, clientCaFile } = files;
  const watched = await watchTlsFiles({ certFile, keyFile, caFile: clientCaFile }, options);
  options.onAttempt(true);
  return { credentials: followTls(watched, { mutual: clientCaFile !== '' }), close: () => watched.close() };
}

/**
 * Creates credentials from watched TLS material; when `mutual`, clients must present a certificate
 * of its authorities.
 */
export function followTls(watched: WatchedTls, { mutual }: { readonly mutual: boolean }): ServerCredentials {
  const provider = new WatchedCertificates(watched.current());
  watched.onChange((material) => provider.update(material));
  // The server's certificate first, then the authorities: the declaration swaps the names.
  return experimental.createCertificateProviderServerCredentials(provider, mutual ? provider : null, mutual);
}

type CaListener = Parameters<experimental.CertificateProvider['addCaCertificateListener']>[0];
type IdentityListener = Parameters<experimental.CertificateProvider['addIdentityCertificateListener']>[0];

/** Passes TLS material to grpc-js, now and after each change. */
class WatchedCertificates implements experimental.CertificateProvider {
  #material: TlsMaterial;
  readonly #caListeners = new Set<CaListener>();
  readonly #identityListeners = new Set<IdentityListener>();

  constructor(material: TlsMaterial) {
    this.#material = material;
  }

  update(material: TlsMaterial): void {
    this.#material = material;
    this.#caListeners.forEach((listener) => {
      this.#notifyCa(listener);
    });
    this.#identityListeners.forEach((listener) => {
      this.#notifyIdentity(listener);
    });
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#caListeners.add(listener);
    // This waits for a turn: grpc-js registers the receiver only after this call.
    queueMicrotask(() => this.#notifyCa(listener));
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#caListeners.delete(listener);
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.add(listener);
    queueMicrotask(() => this.#notifyIdentity(listener));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.delete(listener);
  }

  #notifyCa(listener: CaListener): void {
    const { ca } = this.#material;
    listener(ca === undefined ? null : { caCertificate: ca });
  }

  #notifyIdentity(listener: IdentityListener): void {
    const { cert, key } = this.#material;
    listener(cert === undefined || key === undefined ? null : { certificate: cert, privateKey: key });
  }
}
