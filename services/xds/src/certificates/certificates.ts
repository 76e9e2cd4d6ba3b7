import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import { sleepFor } from '@tollgate/kit/time';
import type { TlsMaterial, WatchedTls } from '@tollgate/kit/tls';
import type { Context } from '../context.ts';
import { type ApiClient, apiBackoff } from '../kube/client.ts';
import { describeApiError, hasStatus } from '../kube/errors.ts';
import { Reflector } from '../kube/reflector.ts';
import { type ObjectName, secrets } from '../kube/resources.ts';
import {
  type Authorities,
  type KeyPair,
  parseCertificate,
  renewAuthorities,
  renewLeaf,
  type WantedLeaf,
} from './authorities.ts';
import { getKeyPair, readSecret, type StoredSecret, writeSecret } from './secrets.ts';

export interface SecretCertificatesOptions {
  readonly api: ApiClient;
  /** Namespace of the Secrets `<name>-ca` and `<name>-server`. */
  readonly namespace: string;
  readonly name: string;
  /** DNS names of the server. */
  readonly serverNames: readonly string[];
  /** Secrets for the certificates of the limiters of their namespaces. */
  readonly clientSecrets: readonly ObjectName[];
  /** Called after each attempt to renew the certificates. */
  readonly onAttempt: (succeeded: boolean) => void;
  /** Interval of expiry checks. Default an hour. */
  readonly checkMs?: number;
  /** Delays after failures; by default half a second to 30 s, with full jitter. */
  readonly backoff?: BackoffOptions;
}

const defaultCheckMs = 3_600_000;
/** Events are handled together: each Secret that is written comes back as an event. */
const debounceMs = 200;

/** Conflicts with other replicas, up to one per Secret. */
const maxConflicts = 10;

/** Identity of the limiters of a namespace. @see https://github.com/spiffe/spiffe SPIFFE-ID §2 */
export const limiterUri = (namespace: string): string => `spiffe://tollgate/ns/${namespace}/limiter`;

/**
 * Keeps a certificate authority and the certificates that it signs in Secrets, and renews them. All
 * replicas do: writes carry the resourceVersion, so that one of several replicas writes a Secret,
 * and the others read the result.
 */
export class SecretCertificates implements WatchedTls {
  readonly #context: Pick<Context, 'logger' | 'nowMs'>;
  readonly #options: SecretCertificatesOptions;
  readonly #closing = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  readonly #listeners = new Set<(value: TlsMaterial) => void>();
  #reflectors: readonly Reflector[] = [];
  #material: TlsMaterial = {};
  #wake = Promise.withResolvers<void>();
  #lastProblem: string | undefined;

  constructor(context: Pick<Context, 'logger' | 'nowMs'>, options: SecretCertificatesOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** The certificate of the server; empty before there is one. */
  current(): TlsMaterial {
    return this.#material;
  }

  onChange(listener: (material: TlsMaterial) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves once there is a certificate for the server. Outages of the API server are retried. */
  async start({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { api, clientSecrets } = this.#options;
    const { logger } = this.#context;
    this.#reflectors = [this.#getSecretName('ca'), this.#getSecretName('server'), ...clientSecrets].map(
      ({ namespace, name }) => {
        const fieldSelector = `metadata.name=${name}`;
        return new Reflector({ api, logger, resource: secrets, namespace, fieldSelector, resyncMs: 0 });
      },
    );
    for (const reflector of this.#reflectors) reflector.start(() => this.#wake.resolve());
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
    const { checkMs = defaultCheckMs, backoff = apiBackoff } = this.#options;
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
        this.#logProblem(error);
      }
      const pauseMs = failures === 0 ? checkMs : delayAfter(failures);
      await Promise.race([this.#pause(pauseMs), this.#wake.promise]);
      await this.#pause(debounceMs);
    }
  }

  #pause(ms: number): Promise<void> {
    return sleepFor(ms, { signal: this.#closing.signal }).catch(() => undefined);
  }

  #getSecretName(part: 'ca' | 'server'): ObjectName {
    const { namespace, name } = this.#options;
    return { namespace, name: `${name}-${part}` };
  }

  async #renewAll(): Promise<void> {
    const { name, serverNames, clientSecrets, onAttempt } = this.#options;
    const authorities = await this.#renewAuthorities();
    const server: WantedLeaf = { commonName: name, use: 'server', dnsNames: serverNames };
    const pair = await this.#renewSecret(this.#getSecretName('server'), server, authorities);
    this.#setMaterial(pair, authorities.bundle);
    const written = await Promise.allSettled(
      clientSecrets.map((secret) => {
        const uri = limiterUri(secret.namespace);
        return this.#renewSecret(secret, { commonName: 'limiter', use: 'client', uri }, authorities);
      }),
    );
    // Thrown after all were attempted: a missing namespace must not affect the others.
    for (const one of written) if (one.status === 'rejected') throw one.reason;
    if (this.#lastProblem !== undefined) this.#context.logger.info('certificates are up to date again');
    this.#lastProblem = undefined;
    onAttempt(true);
  }

  #renewAuthorities(): Promise<Authorities> {
    const { namespace, name } = this.#options;
    return this.#updateSecret(this.#getSecretName('ca'), async ({ data }) => {
      const before = {
        signer: getKeyPair(data, 'tls'),
        next: getKeyPair(data, 'next'),
        bundle: data['ca.crt'] ?? '',
      };
      const nowMs = this.#context.nowMs();
      const result = await renewAuthorities(before, { commonName: `${namespace}/${name}`, nowMs });
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
    return this.#updateSecret(secret, async ({ data }) => {
      const before = getKeyPair(data, 'tls');
      const result = await renewLeaf(before, wanted, { signer, nowMs: this.#context.nowMs() });
      if (before?.cert !== result.cert) this.#logIssued(`${secret.namespace}/${secret.name}`, result);
      return { result, data: { 'tls.crt': result.cert, 'tls.key': result.key, 'ca.crt': bundle } };
    });
  }

  /** Reads a Secret and writes what `make` returns; again after a conflict. */
  async #updateSecret<Result>(
    secret: ObjectName,
    make: (stored: StoredSecret) => Promise<{ result: Result; data: Record<string, string | undefined> }>,
  ): Promise<Result> {
    const { api } = this.#options;
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

  #setMaterial({ cert, key }: KeyPair, bundle: string): void {
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
    this.#context.logger.info({ certificate, notAfter }, 'certificate issued');
  }

  #logProblem(error: unknown): void {
    const { namespace, onAttempt } = this.#options;
    onAttempt(false);
    const attempt = { verb: 'get, list, watch and patch', resource: secrets, namespace };
    const reason = describeApiError(error, attempt);
    if (reason !== this.#lastProblem)
      this.#context.logger.warn({ reason }, 'failed to renew certificates, retrying');
    this.#lastProblem = reason;
  }
}
