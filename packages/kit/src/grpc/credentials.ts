import { experimental, ServerCredentials } from '@grpc/grpc-js';
import type { Logger } from '../logger.ts';
import { type TlsMaterial, type TlsValidity, type WatchedTls, watchTlsFiles } from '../tls.ts';

/** Files of the server's TLS; an empty path is none. */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of client certificates. When set, a client must present one of theirs. */
  readonly clientCaFile: string;
}

/** What following them takes. */
export interface ServerCredentialsDeps {
  readonly logger: Logger;
  /** Told of every attempt to load the files, the first one included. */
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
 * Reads the files and makes credentials from them. When they change, new connections get the new certificate; those
 * that stand keep theirs. Rejects, naming the file, when the files do not fit together.
 */
export async function watchServerCredentials(
  files: ServerTlsFiles,
  deps: ServerCredentialsDeps,
): Promise<WatchedCredentials> {
  const { certFile, keyFile, clientCaFile } = files;
  const watched = await watchTlsFiles({ certFile, keyFile, caFile: clientCaFile }, deps);
  deps.onAttempt(true);
  return { credentials: followTls(watched, { mutual: clientCaFile !== '' }), close: watched.close };
}

/** Makes credentials from TLS material that is watched already; when `mutual`, clients must present a certificate of its authorities. */
export function followTls(watched: WatchedTls, { mutual }: { readonly mutual: boolean }): ServerCredentials {
  const provider = new WatchedCertificates(watched.current());
  watched.onChange((material) => provider.update(material));
  // First the server's own certificate, then the authorities: the declaration has the names the other way round.
  return experimental.createCertificateProviderServerCredentials(provider, mutual ? provider : null, mutual);
}

type CaListener = Parameters<experimental.CertificateProvider['addCaCertificateListener']>[0];
type IdentityListener = Parameters<experimental.CertificateProvider['addIdentityCertificateListener']>[0];

/** Hands TLS material to grpc-js, now and at each change. */
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
      this.#tellCa(listener);
    });
    this.#identityListeners.forEach((listener) => {
      this.#tellIdentity(listener);
    });
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#caListeners.add(listener);
    // Not at once: grpc-js registers who wants the result only after it has called this.
    queueMicrotask(() => this.#tellCa(listener));
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#caListeners.delete(listener);
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.add(listener);
    queueMicrotask(() => this.#tellIdentity(listener));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.delete(listener);
  }

  #tellCa(listener: CaListener): void {
    const { ca } = this.#material;
    listener(ca === undefined ? null : { caCertificate: ca });
  }

  #tellIdentity(listener: IdentityListener): void {
    const { cert, key } = this.#material;
    listener(cert === undefined || key === undefined ? null : { certificate: cert, privateKey: key });
  }
}
