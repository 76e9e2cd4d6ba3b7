import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { Counter, Gauge, type Registry } from 'prom-client';
import { type FileWatch, type WatchFilesOptions, watchFiles } from './file-watch.ts';
import { createFailureLog, type Logger } from './logger.ts';

/** Which PEM files to read; an absent or empty path is no file. Certificate and key go together. */
export type TlsFiles = {
  /** The certificate, followed by those between it and its authority. */
  readonly certFile?: string;
  /** The private key of the certificate, not encrypted. */
  readonly keyFile?: string;
  /** The authorities that the other side's certificate may come from. */
  readonly caFile?: string;
};

/** TLS material that was found to fit together; what `tls.createSecureContext` takes. */
export type TlsMaterial = {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly ca?: Buffer;
  /** When the certificate begins to be valid, in milliseconds since 1970. */
  readonly notBeforeMs?: number;
  /** When the certificate ends to be valid, in milliseconds since 1970. */
  readonly notAfterMs?: number;
};

/** The time in which a certificate is valid, in milliseconds since 1970. */
export type TlsValidity = { readonly notBeforeMs: number; readonly notAfterMs: number };

/** Material, or in one sentence why there is none. */
export type LoadedTls =
  | { readonly ok: true; readonly material: TlsMaterial }
  | { readonly ok: false; readonly problem: string };

/** TLS material that follows its files. */
export type WatchedTls = FileWatch & {
  /** The last material that fitted together. */
  current(): TlsMaterial;
  /** Calls the listener with each new material, until the returned function is called. */
  onChange(listener: (material: TlsMaterial) => void): () => void;
};

/** As the alert on the expiry of certificates; those of a short life are renewed with a third of it left. */
const expiresSoonMs = 14 * 24 * 60 * 60 * 1000;

/** Reads TLS files and checks that they can be used: all parse, and the key is the certificate's. Problems name the file. */
export async function loadTlsFiles(files: TlsFiles): Promise<LoadedTls> {
  const { certFile = '', keyFile = '', caFile = '' } = files;
  if ((certFile === '') !== (keyFile === '')) {
    return {
      ok: false,
      problem: `a certificate and its key are needed together, there is only ${certFile || keyFile}`,
    };
  }
  try {
    const pair = certFile === '' ? {} : await loadPair(certFile, keyFile);
    const ca = caFile === '' ? {} : { ca: await loadAuthorities(caFile) };
    const material = { ...pair, ...ca };
    // What the handshake would refuse: a key too small for OpenSSL's security level, a broken certificate after the first.
    explain(`${certFile || caFile} cannot be used`, () => createSecureContext(material));
    return { ok: true, material };
  } catch (error) {
    if (error instanceof TlsFileProblem) return { ok: false, problem: error.message };
    throw error;
  }
}

/**
 * Reads TLS files and follows their changes. New files are used only when they fit together; until then the last good ones stay, and
 * the problem is logged once per change. Throws when the first ones do not.
 */
export async function watchTlsFiles(
  files: TlsFiles,
  deps: Pick<WatchFilesOptions, 'debounceMs' | 'pollMs' | 'watch'> & {
    readonly logger: Logger;
    /** Told of every attempt to load changed files, for statistics. */
    readonly onAttempt?: (succeeded: boolean) => void;
    /** Called with the validity of the certificate in use, now and after each change. */
    readonly onCertificate?: (validity: TlsValidity) => void;
    /** Unix time in milliseconds. Default `Date.now`. */
    readonly nowMs?: () => number;
  },
): Promise<WatchedTls> {
  const { logger } = deps;
  const paths = [files.certFile, files.keyFile, files.caFile].flatMap((path) => (path ? [path] : []));
  const listeners = new Set<(material: TlsMaterial) => void>();
  let current: TlsMaterial = {};

  const firstLoad = Promise.withResolvers<void>();

  function use(material: TlsMaterial): void {
    current = material;
    const { notBeforeMs, notAfterMs } = material;
    if (notBeforeMs === undefined || notAfterMs === undefined) return;
    deps.onCertificate?.({ notBeforeMs, notAfterMs });
    const notAfter = shownTime(notAfterMs);
    const leftMs = notAfterMs - (deps.nowMs ?? Date.now)();
    const soonMs = Math.min(expiresSoonMs, (notAfterMs - notBeforeMs) / 4);
    // Not a start error: the pod would crash in a loop, and peers that ignore expiry would lose service, too.
    if (leftMs <= 0) logger.error({ paths, notAfter }, 'TLS certificate has expired, peers will refuse it');
    else if (leftMs < soonMs) logger.warn({ paths, notAfter }, 'TLS certificate expires soon');
  }

  async function reload(): Promise<void> {
    // Else a slow first load could end last, with what was there before the change.
    await firstLoad.promise;
    const loaded = await loadTlsFiles(files);
    deps.onAttempt?.(loaded.ok);
    if (!loaded.ok) {
      logger.error({ problem: loaded.problem }, 'new TLS files not used, the last good ones stay');
      return;
    }
    if (sameMaterial(current, loaded.material)) return;
    use(loaded.material);
    logger.info({ paths, notAfter: shownTime(current.notAfterMs) }, 'TLS files reloaded');
    for (const listener of [...listeners]) listener(current);
  }

  // The watch first: files that change while they are read are read again.
  const watch = await watchFiles({ ...deps, paths, onChange: reload });
  const first = await loadTlsFiles(files);
  if (!first.ok) {
    watch.close();
    throw new Error(first.problem);
  }
  use(first.material);
  firstLoad.resolve();
  return {
    current: () => current,
    onChange(listener) {
      const own = (material: TlsMaterial): void => listener(material);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    close: watch.close,
  };
}

/** Thrown inside this file only; becomes a `problem`. */
class TlsFileProblem extends Error {}

async function loadPair(certFile: string, keyFile: string): Promise<Required<Omit<TlsMaterial, 'ca'>>> {
  const [cert, key] = await Promise.all([readPem(certFile), readPem(keyFile)]);
  const certificate = explain(`${certFile} holds no certificate`, () => new X509Certificate(cert));
  const privateKey = explain(`${keyFile} holds no private key without a passphrase`, () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsFileProblem(`the key in ${keyFile} is not the one of the certificate in ${certFile}`);
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
    explain(`certificate ${index + 1} in ${caFile} cannot be read`, () => new X509Certificate(certificate));
  }
  return ca;
}

async function readPem(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new TlsFileProblem(`${path} cannot be read: ${messageOf(error)}`);
  }
}

function explain<T>(problem: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new TlsFileProblem(`${problem}: ${messageOf(error)}`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function sameMaterial(one: TlsMaterial, other: TlsMaterial): boolean {
  return (['cert', 'key', 'ca'] as const).every((part) => {
    const [left, right] = [one[part], other[part]];
    return left === right || (left !== undefined && right !== undefined && left.equals(right));
  });
}

function shownTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

/** Where failed handshakes of a listener are reported. */
export interface HandshakeReport {
  readonly logger: Logger;
  /** Name of the listener in log lines, the same as in metrics. */
  readonly listener: string;
  /** Called once for each failed handshake. */
  readonly onFailure?: () => void;
}

/** Counts handshakes that fail, and logs them: equal failures once a second. */
export function reportHandshakes(server: NodeJS.EventEmitter, report: HandshakeReport): void {
  const { logger, listener, onFailure } = report;
  const logFailure = createFailureLog({ logger, message: 'TLS handshake failed', level: 'warn' });
  // A socket that was reset has forgotten its peer by the time of the error.
  const peers = new WeakMap<Socket, string | undefined>();
  server.on('connection', (socket: Socket) => peers.set(socket, socket.remoteAddress));
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    // Undocumented, hence optional; the socket itself counts no bytes before the handshake is done.
    const { _parent: transport } = socket as { _parent?: Socket };
    // Health probes of load balancers and kubelets connect and close without a byte.
    if (transport?.bytesRead === 0) return;
    onFailure?.();
    // Node says only "socket hang up" of a client whose certificate it refused.
    const { authorizationError: refusal } = socket;
    const certificate = refusal ? { certificateError: String(refusal) } : {};
    logFailure(error, { listener, peer: transport && peers.get(transport), ...certificate });
  });
}

/** Names of the TLS metrics; the same in every service, so that one alert covers all of them. */
export const tlsMetricNames = {
  certificateNotBefore: 'tollgate_tls_certificate_not_before_timestamp_seconds',
  certificateExpiry: 'tollgate_tls_certificate_expiry_timestamp_seconds',
  handshakeFailures: 'tollgate_tls_handshake_failures_total',
} as const;

/** Metrics of certificates and TLS listeners. Label values come from a fixed set per service. */
export interface TlsMetrics {
  /** Sets the validity of the certificate named `certificate`, such as `ads_server` or `redis_client`. */
  setValidity(certificate: string, validity: TlsValidity): void;
  /** Adds a listener with 0 failures; the returned function counts one. */
  handshakeFailures(listener: string): () => void;
}

/** Registers the TLS metrics. */
export function createTlsMetrics(registry: Registry): TlsMetrics {
  const registers = [registry];
  const notBefore = new Gauge({
    name: tlsMetricNames.certificateNotBefore,
    help: 'Unix time from which the certificate in use is valid.',
    labelNames: ['certificate'],
    registers,
  });
  const expiry = new Gauge({
    name: tlsMetricNames.certificateExpiry,
    help: 'Unix time at which the certificate in use expires.',
    labelNames: ['certificate'],
    registers,
  });
  const failures = new Counter({
    name: tlsMetricNames.handshakeFailures,
    help: 'TLS handshakes with clients that failed or were refused.',
    labelNames: ['listener'],
    registers,
  });
  return {
    setValidity(certificate, { notBeforeMs, notAfterMs }) {
      notBefore.set({ certificate }, notBeforeMs / 1000);
      expiry.set({ certificate }, notAfterMs / 1000);
    },
    handshakeFailures(listener) {
      failures.inc({ listener }, 0);
      return () => failures.inc({ listener });
    },
  };
}
