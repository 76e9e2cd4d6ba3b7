import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { getErrorMessage } from './errors.ts';
import { type FileWatch, type WatchFilesOptions, watchFiles } from './file-watch.ts';
import { FailureLog, type Logger } from './logger.ts';

/** PEM files; an absent or empty path is no file. Certificate and key go together. */
export type TlsFiles = {
  /** The certificate, followed by its intermediate certificates. */
  readonly certFile?: string;
  /** The private key of the certificate, not encrypted. */
  readonly keyFile?: string;
  /** Authorities that may have issued the peer's certificate. */
  readonly caFile?: string;
};

/** Consistent TLS material, as `tls.createSecureContext` takes it. */
export type TlsMaterial = {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly ca?: Buffer;
  /** Start of the certificate's validity, in milliseconds since 1970. */
  readonly notBeforeMs?: number;
  /** End of the certificate's validity, in milliseconds since 1970. */
  readonly notAfterMs?: number;
};

/** Validity of a certificate, in milliseconds since 1970. */
export type TlsValidity = { readonly notBeforeMs: number; readonly notAfterMs: number };

/** Material, or the problem in one sentence. */
export type LoadedTls =
  | { readonly ok: true; readonly material: TlsMaterial }
  | { readonly ok: false; readonly problem: string };

/** TLS material that may change. */
export interface WatchedTls {
  /** The last consistent material. */
  current(): TlsMaterial;
  /** Calls the listener with each new material, until the returned function is called. */
  onChange(listener: (material: TlsMaterial) => void): () => void;
  close(): void;
}

/**
 * The alert on certificate expiry uses the same time. Short-lived certificates are renewed with a
 * third of their lifetime left.
 */
const expiresSoonMs = 14 * 24 * 60 * 60 * 1000;

/**
 * Reads TLS files and checks that all parse and the key belongs to the certificate. Problems name
 * the file.
 */
export async function loadTlsFiles(files: TlsFiles): Promise<LoadedTls> {
  const { certFile = '', keyFile = '', caFile = '' } = files;
  if ((certFile === '') !== (keyFile === '')) {
    return {
      ok: false,
      problem: `a certificate and its key are needed together: only ${certFile || keyFile} is set`,
    };
  }
  try {
    const pair = certFile === '' ? {} : await loadPair(certFile, keyFile);
    const ca = caFile === '' ? {} : { ca: await loadAuthorities(caFile) };
    const material = { ...pair, ...ca };
    // Fails for what a handshake would refuse: a key too small for OpenSSL's security level, a
    // broken intermediate.
    withProblem(`${certFile || caFile} cannot be used`, () => createSecureContext(material));
    return { ok: true, material };
  } catch (error) {
    if (error instanceof TlsFileProblem) return { ok: false, problem: error.message };
    throw error;
  }
}

/** Options of watched TLS files. */
type WatchTlsOptions = Pick<WatchFilesOptions, 'debounceMs' | 'pollMs' | 'watch'> & {
  readonly logger: Logger;
  /** Called after every attempt to load changed files. */
  readonly onAttempt?: (succeeded: boolean) => void;
  /** Called with the validity of the certificate in use, now and after each change. */
  readonly onCertificate?: (validity: TlsValidity) => void;
  /** Unix time in milliseconds. Default `Date.now`. */
  readonly nowMs?: () => number;
};

/**
 * Reads TLS files and follows their changes. New files are used only when they are consistent;
 * until then the last good ones stay in use, and the problem is logged once per change. Throws when
 * the first ones are not consistent.
 */
export async function watchTlsFiles(files: TlsFiles, options: WatchTlsOptions): Promise<WatchedTls> {
  const watched = new TlsFileWatch(files, options);
  await watched.start();
  return watched;
}

/** TLS material that follows its files. */
class TlsFileWatch implements WatchedTls {
  readonly #files: TlsFiles;
  readonly #paths: readonly string[];
  readonly #options: WatchTlsOptions;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  readonly #firstLoad = Promise.withResolvers<void>();
  #current: TlsMaterial = {};
  #watch: FileWatch | undefined;

  constructor(files: TlsFiles, options: WatchTlsOptions) {
    this.#files = files;
    this.#paths = [files.certFile, files.keyFile, files.caFile].flatMap((path) => (path ? [path] : []));
    this.#options = options;
  }

  async start(): Promise<void> {
    // The watch first: files that change while they are read are read again.
    this.#watch = await watchFiles({
      ...this.#options,
      paths: this.#paths,
      onChange: () => this.#reload(),
    });
    const first = await loadTlsFiles(this.#files);
    if (!first.ok) {
      this.close();
      throw new Error(first.problem);
    }
    this.#use(first.material);
    this.#firstLoad.resolve();
  }

  current(): TlsMaterial {
    return this.#current;
  }

  onChange(listener: (material: TlsMaterial) => void): () => void {
    const own = (material: TlsMaterial): void => listener(material);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  close(): void {
    this.#watch?.close();
  }

  #use(material: TlsMaterial): void {
    this.#current = material;
    const { notBeforeMs, notAfterMs } = material;
    if (notBeforeMs === undefined || notAfterMs === undefined) return;
    const { logger, onCertificate, nowMs = Date.now } = this.#options;
    onCertificate?.({ notBeforeMs, notAfterMs });
    const fields = { paths: this.#paths, notAfter: formatTime(notAfterMs) };
    const leftMs = notAfterMs - nowMs();
    const soonMs = Math.min(expiresSoonMs, (notAfterMs - notBeforeMs) / 4);
    // This is no start error: the pod would crash in a loop, and peers that ignore expiry would
    // lose service as well.
    if (leftMs <= 0) logger.error(fields, 'TLS certificate has expired, peers will refuse it');
    else if (leftMs < soonMs) logger.warn(fields, 'TLS certificate expires soon');
  }

  async #reload(): Promise<void> {
    // Otherwise a slow first load could end last, with the content from before the change.
    await this.#firstLoad.promise;
    const { logger, onAttempt } = this.#options;
    const loaded = await loadTlsFiles(this.#files);
    onAttempt?.(loaded.ok);
    if (!loaded.ok) {
      logger.error({ problem: loaded.problem }, 'new TLS files not used, keeping the last good ones');
      return;
    }
    if (sameMaterial(this.#current, loaded.material)) return;
    this.#use(loaded.material);
    logger.info({ paths: this.#paths, notAfter: formatTime(this.#current.notAfterMs) }, 'TLS files reloaded');
    for (const listener of [...this.#listeners]) listener(this.#current);
  }
}

/** Internal to this file; becomes a `problem`. */
class TlsFileProblem extends Error {}

async function loadPair(certFile: string, keyFile: string): Promise<Required<Omit<TlsMaterial, 'ca'>>> {
  const [cert, key] = await Promise.all([readPem(certFile), readPem(keyFile)]);
  const certificate = withProblem(`${certFile} holds no certificate`, () => new X509Certificate(cert));
  const privateKey = withProblem(`${keyFile} holds no private key without a passphrase`, () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsFileProblem(`the key in ${keyFile} does not belong to the certificate in ${certFile}`);
  }
  const notBeforeMs = certificate.validFromDate.getTime();
  return { cert, key, notBeforeMs, notAfterMs: certificate.validToDate.getTime() };
}

const pemCertificate = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

async function loadAuthorities(caFile: string): Promise<Buffer> {
  const ca = await readPem(caFile);
  const certificates = ca.toString('latin1').match(pemCertificate) ?? [];
  if (certificates.length === 0) throw new TlsFileProblem(`${caFile} holds no certificate`);
  for (const [index, certificate] of certificates.entries()) {
    withProblem(
      `certificate ${index + 1} in ${caFile} cannot be read`,
      () => new X509Certificate(certificate),
    );
  }
  return ca;
}

async function readPem(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new TlsFileProblem(`${path} cannot be read: ${getErrorMessage(error)}`);
  }
}

function withProblem<T>(problem: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new TlsFileProblem(`${problem}: ${getErrorMessage(error)}`);
  }
}

function sameMaterial(one: TlsMaterial, other: TlsMaterial): boolean {
  return (['cert', 'key', 'ca'] as const).every((part) => {
    const [left, right] = [one[part], other[part]];
    return left === right || (left !== undefined && right !== undefined && left.equals(right));
  });
}

function formatTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

/** How failed handshakes of a listener are reported. */
export interface HandshakeReport {
  readonly logger: Logger;
  /** Name of the listener in log lines, the same as in metrics. */
  readonly listener: string;
  /** Called once for each failed handshake. */
  readonly onFailure?: () => void;
}

/** Counts failed handshakes and logs them, equal failures once a second. */
export function reportHandshakes(server: NodeJS.EventEmitter, report: HandshakeReport): void {
  const { logger, listener, onFailure } = report;
  const failures = new FailureLog({ logger, message: 'TLS handshake failed', level: 'warn' });
  // The error event of a socket that was reset comes after its remote address is gone.
  const peers = new WeakMap<Socket, string | undefined>();
  server.on('connection', (socket: Socket) => peers.set(socket, socket.remoteAddress));
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    // Undocumented, hence optional; the socket itself counts no bytes before the handshake is done.
    const { _parent: transport } = socket as { _parent?: Socket };
    // Health probes of load balancers and kubelets connect and close without a byte.
    if (transport?.bytesRead === 0) return;
    onFailure?.();
    // For a refused client certificate, Node's error says only "socket hang up".
    const { authorizationError: refusal } = socket;
    const certificate = refusal ? { certificateError: String(refusal) } : {};
    failures.log(error, { listener, peer: transport && peers.get(transport), ...certificate });
  });
}

/** Names of the TLS metrics; the same in every service, so that one alert covers all of them. */
export const tlsMetricNames = {
  certificateNotBefore: 'tollgate_tls_certificate_not_before_timestamp_seconds',
  certificateExpiry: 'tollgate_tls_certificate_expiry_timestamp_seconds',
  handshakeFailures: 'tollgate_tls_handshake_failures_total',
} as const;
