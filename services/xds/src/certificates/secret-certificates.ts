import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { TlsMaterial, WatchedTls } from '@tollgate/kit/tls-files';
import type { ApiClient } from '../kubernetes/api-client.ts';
import { hasStatus } from '../kubernetes/api-error.ts';
import { explainApiError } from '../kubernetes/explain-api-error.ts';
import { type ObjectName, secrets } from '../kubernetes/kube-resource.ts';
import { createReflector, type Reflector } from '../kubernetes/reflector.ts';
import { type Authorities, advanceAuthorities } from './authorities.ts';
import { type KeyPair, parseCertificate } from './issue.ts';
import { renewLeaf, type WantedLeaf } from './leaf.ts';
import { pairOf, readSecret, type StoredSecret, writeSecret } from './secret-data.ts';

/** Which Secrets, and what is in them. */
export interface SecretCertificatesOptions {
  /** Secrets `<name>-ca` and `<name>-server` are in this namespace. */
  readonly namespace: string;
  readonly name: string;
  /** DNS names of the server. */
  readonly serverNames: readonly string[];
  /** Secrets with a certificate for the limiters of their namespaces. */
  readonly clientSecrets: readonly ObjectName[];
  /** How often the end of certificates is looked at. Default an hour. */
  readonly checkMs?: number;
  /** Waiting times after failures; half a second at first, 30 s at most, with full jitter, unless told otherwise. */
  readonly backoff?: BackoffOptions;
}

/** What is needed for it. */
export interface SecretCertificatesDeps {
  readonly api: ApiClient;
  readonly logger: Logger;
  /** Called after each attempt to bring the certificates up to date that has read or failed to read them. */
  readonly onAttempt: (succeeded: boolean) => void;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}

/** Certificates of the ADS server and of its limiters. */
export interface SecretCertificates extends WatchedTls {
  /** Resolves once there is a certificate for the server. Goes on through every outage of the API server. */
  start(context: { readonly signal: AbortSignal }): Promise<void>;
}

const defaultCheckMs = 3_600_000;
const defaultBackoff: BackoffOptions = { initialMs: 500, maxMs: 30_000, jitter: 1 };

/** Events of one moment are looked at together: a Secret that was written comes back as an event. */
const debounceMs = 200;

/** Another replica may have been faster, and once more for each Secret. */
const maxConflicts = 10;

/** The identity that the certificate of limiters in a namespace carries. @see https://github.com/spiffe/spiffe SPIFFE-ID §2 */
export const limiterUri = (namespace: string): string => `spiffe://tollgate/ns/${namespace}/limiter`;

/**
 * Keeps an authority and the certificates that it signs in Secrets, and renews them. All replicas do: writes are guarded by
 * resourceVersion, so of several that reach for a Secret one writes it, and the others read what it wrote.
 */
export function createSecretCertificates(
  options: SecretCertificatesOptions,
  deps: SecretCertificatesDeps,
): SecretCertificates {
  const { namespace, name, serverNames, clientSecrets, checkMs = defaultCheckMs } = options;
  const { api, logger, onAttempt, nowMs } = deps;
  const delayAfter = backoffDelays({ random: Math.random, ...(options.backoff ?? defaultBackoff) });
  const authoritySecret: ObjectName = { namespace, name: `${name}-ca` };
  const serverSecret: ObjectName = { namespace, name: `${name}-server` };
  const closing = new AbortController();
  const first = Promise.withResolvers<void>();
  const listeners = new Set<(material: TlsMaterial) => void>();
  const reflectors: Reflector[] = [];
  let material: TlsMaterial = {};
  let wake = Promise.withResolvers<void>();
  let lastProblem: string | undefined;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    let failures = 0;
    while (!closing.signal.aborted) {
      wake = Promise.withResolvers();
      try {
        await renewAll();
        failures = 0;
      } catch (error) {
        if (closing.signal.aborted) return;
        failures += 1;
        report(error);
      }
      const pauseMs = failures === 0 ? checkMs : delayAfter(failures);
      await Promise.race([pause(pauseMs), wake.promise]);
      await pause(debounceMs);
    }
  }

  const pause = (ms: number): Promise<void> =>
    sleepFor(ms, { signal: closing.signal }).catch(() => undefined);

  async function renewAll(): Promise<void> {
    const authorities = await renewAuthorities();
    const { signer, bundle } = authorities;
    const server: WantedLeaf = { commonName: name, use: 'server', dnsNames: serverNames };
    use(await renewSecret(serverSecret, server, authorities), bundle);
    const written = await Promise.allSettled(
      clientSecrets.map((secret) => {
        const uri = limiterUri(secret.namespace);
        return renewSecret(secret, { commonName: 'limiter', use: 'client', uri }, { signer, bundle });
      }),
    );
    // A namespace that is not there must not keep the others from their certificates.
    for (const one of written) if (one.status === 'rejected') throw one.reason;
    if (lastProblem !== undefined) logger.info('certificates are up to date again');
    lastProblem = undefined;
    onAttempt(true);
  }

  function renewAuthorities(): Promise<Authorities> {
    return untilWritten(authoritySecret, async (stored) => {
      const before = {
        signer: pairOf(stored.data, 'tls'),
        next: pairOf(stored.data, 'next'),
        bundle: stored.data['ca.crt'] ?? '',
      };
      const result = await advanceAuthorities(before, { commonName: `${namespace}/${name}`, nowMs: nowMs() });
      if (before.signer?.cert !== result.signer.cert) logCertificate('authority', result.signer);
      if (result.next !== undefined && before.next?.cert !== result.next.cert)
        logCertificate('next authority', result.next);
      const { signer, next, bundle } = result;
      const data = {
        'tls.crt': signer.cert,
        'tls.key': signer.key,
        'next.crt': next?.cert,
        'next.key': next?.key,
        'ca.crt': bundle,
      };
      return { result, data };
    });
  }

  function renewSecret(
    secret: ObjectName,
    wanted: WantedLeaf,
    { signer, bundle }: Pick<Authorities, 'signer' | 'bundle'>,
  ): Promise<KeyPair> {
    return untilWritten(secret, async (stored) => {
      const before = pairOf(stored.data, 'tls');
      const result = await renewLeaf(before, wanted, { signer, nowMs: nowMs() });
      if (before?.cert !== result.cert) logCertificate(`${secret.namespace}/${secret.name}`, result);
      return { result, data: { 'tls.crt': result.cert, 'tls.key': result.key, 'ca.crt': bundle } };
    });
  }

  /** Reads a Secret, works out what it should hold, and writes that; again when another replica was faster. */
  async function untilWritten<Result>(
    secret: ObjectName,
    make: (stored: StoredSecret) => Promise<{ result: Result; data: Record<string, string | undefined> }>,
  ): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      const stored = await readSecret(api, secret, closing.signal);
      const { result, data } = await make(stored);
      try {
        await writeSecret(api, secret, { stored, data, signal: closing.signal });
        return result;
      } catch (error) {
        if (!hasStatus(error, 409) || attempt === maxConflicts) throw error;
      }
    }
  }

  function use({ cert, key }: KeyPair, bundle: string): void {
    const next = { cert: Buffer.from(cert), key: Buffer.from(key), ca: Buffer.from(bundle) };
    const isSame = (['cert', 'key', 'ca'] as const).every((part) => material[part]?.equals(next[part]));
    if (isSame) return;
    const certificate = parseCertificate(cert);
    material = {
      ...next,
      ...(certificate && {
        notBeforeMs: Date.parse(certificate.validFrom),
        notAfterMs: Date.parse(certificate.validTo),
      }),
    };
    for (const listener of [...listeners]) listener(material);
    first.resolve();
  }

  function logCertificate(what: string, { cert }: KeyPair): void {
    logger.info({ certificate: what, notAfter: parseCertificate(cert)?.validTo }, 'certificate issued');
  }

  function report(error: unknown): void {
    onAttempt(false);
    const attempt = { verb: 'get, list, watch and patch', resource: secrets, namespace };
    const advice = explainApiError(error, attempt);
    const reason = advice ?? (error instanceof Error ? error.message : String(error));
    if (reason !== lastProblem) logger.warn({ reason }, 'certificates not renewed, trying again');
    lastProblem = reason;
  }

  return {
    current: () => material,
    onChange(listener) {
      const own = (next: TlsMaterial): void => listener(next);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    async start({ signal }) {
      for (const secret of [authoritySecret, serverSecret, ...clientSecrets]) {
        const reflector = createReflector(
          {
            resource: secrets,
            namespace: secret.namespace,
            fieldSelector: `metadata.name=${secret.name}`,
            resyncMs: 0,
          },
          { api, logger },
        );
        reflectors.push(reflector);
        reflector.start(() => wake.resolve());
      }
      running ??= run();
      const aborted = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => aborted.resolve(), { once: true });
      if (signal.aborted) return;
      await Promise.race([first.promise, aborted.promise]);
    },
    close() {
      closing.abort(new Error('closed'));
      wake.resolve();
      for (const reflector of reflectors) void reflector.close();
      void running;
    },
  };
}
