import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { TlsMaterial, WatchedTls } from '@tollgate/kit/tls';
import type { ApiClient } from '../kube/client.ts';
import { explainApiError, hasStatus } from '../kube/errors.ts';
import { type ObjectName, secrets } from '../kube/objects.ts';
import { createReflector, type Reflector } from '../kube/reflector.ts';
import { type Authorities, advanceAuthorities, renewLeaf, type WantedLeaf } from './authorities.ts';
import { type KeyPair, parseCertificate } from './issue.ts';
import { pairOf, readSecret, type StoredSecret, writeSecret } from './secrets.ts';

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
export class SecretCertificates implements WatchedTls {
  readonly #options: SecretCertificatesOptions;
  readonly #deps: SecretCertificatesDeps;
  readonly #closing = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  #reflectors: readonly Reflector[] = [];
  #material: TlsMaterial = {};
  #wake = Promise.withResolvers<void>();
  #lastProblem: string | undefined;

  constructor(options: SecretCertificatesOptions, deps: SecretCertificatesDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /** The server's certificate; empty before there is one. */
  current(): TlsMaterial {
    return this.#material;
  }

  onChange(listener: (material: TlsMaterial) => void): () => void {
    const own = (material: TlsMaterial): void => listener(material);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Resolves once there is a certificate for the server. Goes on through every outage of the API server. */
  async start({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { api, logger } = this.#deps;
    this.#reflectors = [this.#secret('ca'), this.#secret('server'), ...this.#options.clientSecrets].map(
      ({ namespace, name }) => {
        const fieldSelector = `metadata.name=${name}`;
        const options = { resource: secrets, namespace, fieldSelector, resyncMs: 0 };
        const reflector = createReflector(options, { api, logger });
        reflector.start(() => this.#wake.resolve());
        return reflector;
      },
    );
    void this.#run();
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => aborted.resolve(), { once: true });
    if (!signal.aborted) await Promise.race([this.#first.promise, aborted.promise]);
  }

  close(): void {
    this.#closing.abort(new Error('closed'));
    this.#wake.resolve();
    for (const reflector of this.#reflectors) void reflector.close();
  }

  async #run(): Promise<void> {
    const { checkMs = defaultCheckMs, backoff = defaultBackoff } = this.#options;
    const delayAfter = backoffDelays({ random: Math.random, ...backoff });
    let failures = 0;
    while (!this.#closing.signal.aborted) {
      this.#wake = Promise.withResolvers();
      try {
        await this.#renewAll();
        failures = 0;
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        failures += 1;
        this.#report(error);
      }
      const pauseMs = failures === 0 ? checkMs : delayAfter(failures);
      await Promise.race([this.#pause(pauseMs), this.#wake.promise]);
      await this.#pause(debounceMs);
    }
  }

  #pause(ms: number): Promise<void> {
    return sleepFor(ms, { signal: this.#closing.signal }).catch(() => undefined);
  }

  #secret(part: 'ca' | 'server'): ObjectName {
    const { namespace, name } = this.#options;
    return { namespace, name: `${name}-${part}` };
  }

  async #renewAll(): Promise<void> {
    const { name, serverNames, clientSecrets } = this.#options;
    const { logger, onAttempt } = this.#deps;
    const authorities = await this.#renewAuthorities();
    const server: WantedLeaf = { commonName: name, use: 'server', dnsNames: serverNames };
    this.#use(await this.#renewSecret(this.#secret('server'), server, authorities), authorities.bundle);
    const written = await Promise.allSettled(
      clientSecrets.map((secret) => {
        const uri = limiterUri(secret.namespace);
        return this.#renewSecret(secret, { commonName: 'limiter', use: 'client', uri }, authorities);
      }),
    );
    // A namespace that does not exist must not keep the others from their certificates.
    for (const one of written) if (one.status === 'rejected') throw one.reason;
    if (this.#lastProblem !== undefined) logger.info('certificates are up to date again');
    this.#lastProblem = undefined;
    onAttempt(true);
  }

  #renewAuthorities(): Promise<Authorities> {
    const { namespace, name } = this.#options;
    return this.#untilWritten(this.#secret('ca'), async ({ data }) => {
      const before = {
        signer: pairOf(data, 'tls'),
        next: pairOf(data, 'next'),
        bundle: data['ca.crt'] ?? '',
      };
      const nowMs = this.#deps.nowMs();
      const result = await advanceAuthorities(before, { commonName: `${namespace}/${name}`, nowMs });
      const { signer, next, bundle } = result;
      if (before.signer?.cert !== signer.cert) this.#logIssued('authority', signer);
      if (next !== undefined && before.next?.cert !== next.cert) this.#logIssued('next authority', next);
      return {
        result,
        data: {
          'tls.crt': signer.cert,
          'tls.key': signer.key,
          'next.crt': next?.cert,
          'next.key': next?.key,
          'ca.crt': bundle,
        },
      };
    });
  }

  #renewSecret(
    secret: ObjectName,
    wanted: WantedLeaf,
    { signer, bundle }: Pick<Authorities, 'signer' | 'bundle'>,
  ): Promise<KeyPair> {
    return this.#untilWritten(secret, async ({ data }) => {
      const before = pairOf(data, 'tls');
      const result = await renewLeaf(before, wanted, { signer, nowMs: this.#deps.nowMs() });
      if (before?.cert !== result.cert) this.#logIssued(`${secret.namespace}/${secret.name}`, result);
      return { result, data: { 'tls.crt': result.cert, 'tls.key': result.key, 'ca.crt': bundle } };
    });
  }

  /** Reads a Secret, works out what it should hold, and writes that; again when another replica was faster. */
  async #untilWritten<Result>(
    secret: ObjectName,
    make: (stored: StoredSecret) => Promise<{ result: Result; data: Record<string, string | undefined> }>,
  ): Promise<Result> {
    const { api } = this.#deps;
    const { signal } = this.#closing;
    for (let attempt = 1; ; attempt += 1) {
      const stored = await readSecret(api, secret, signal);
      const { result, data } = await make(stored);
      try {
        await writeSecret(api, secret, { stored, data, signal });
        return result;
      } catch (error) {
        if (!hasStatus(error, 409) || attempt === maxConflicts) throw error;
      }
    }
  }

  #use({ cert, key }: KeyPair, bundle: string): void {
    const next = { cert: Buffer.from(cert), key: Buffer.from(key), ca: Buffer.from(bundle) };
    const parts = ['cert', 'key', 'ca'] as const;
    if (parts.every((part) => this.#material[part]?.equals(next[part]))) return;
    const certificate = parseCertificate(cert);
    this.#material = {
      ...next,
      ...(certificate && {
        notBeforeMs: Date.parse(certificate.validFrom),
        notAfterMs: Date.parse(certificate.validTo),
      }),
    };
    for (const listener of [...this.#listeners]) listener(this.#material);
    this.#first.resolve();
  }

  #logIssued(certificate: string, { cert }: KeyPair): void {
    const notAfter = parseCertificate(cert)?.validTo;
    this.#deps.logger.info({ certificate, notAfter }, 'certificate issued');
  }

  #report(error: unknown): void {
    const { logger, onAttempt } = this.#deps;
    onAttempt(false);
    const { namespace } = this.#options;
    const attempt = { verb: 'get, list, watch and patch', resource: secrets, namespace };
    const advice = explainApiError(error, attempt);
    const reason = advice ?? (error instanceof Error ? error.message : String(error));
    if (reason !== this.#lastProblem) logger.warn({ reason }, 'certificates not renewed, trying again');
    this.#lastProblem = reason;
  }
}
