import { sleepFor } from '@tollgate/kit/time';
import type { WatchedTls } from '@tollgate/kit/tls';
import type { Context } from '../context.ts';
import { type ApiClient, objectPath, requireRecord } from '../kube/client.ts';
import { describeApiError, hasStatus } from '../kube/errors.ts';
import { validatingWebhookConfigurations as resource } from '../kube/resources.ts';

/** The webhook in the configuration; clients see it in errors. */
const webhookName = 'validate.ratelimit.tollgate.dev';

interface CaBundleOptions {
  readonly api: ApiClient;
  /** The ValidatingWebhookConfiguration. */
  readonly name: string;
  readonly tls: WatchedTls;
  /** Undefined when there is no leader: then every replica writes, and all write the same. */
  readonly leadership:
    | { isLeader(): boolean; onChange(listener: (leader: boolean) => void): () => void }
    | undefined;
  /** Default 30000. */
  readonly intervalMs?: number;
}

/** How soon a configuration is corrected that something else has changed. */
const defaultIntervalMs = 30_000;
const timeoutMs = 10_000;

/**
 * Keeps the authorities of our certificate in the ValidatingWebhookConfiguration. Without them the
 * API server does not call the webhook. Every replica compares, and the leader writes.
 */
export class CaBundle {
  readonly #context: Pick<Context, 'logger' | 'metrics'>;
  readonly #options: CaBundleOptions;
  readonly #closing = new AbortController();
  #wake = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #lastProblem: string | undefined;
  #stopListening: readonly (() => void)[] = [];

  constructor(context: Pick<Context, 'logger' | 'metrics'>, options: CaBundleOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Outages of the API server are retried. */
  start(): void {
    const { tls, leadership } = this.#options;
    const wake = () => this.#wake.resolve();
    this.#stopListening = [tls.onChange(wake), ...(leadership ? [leadership.onChange(wake)] : [])];
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    for (const stop of this.#stopListening) stop();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { intervalMs = defaultIntervalMs } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      await this.#attempt();
      await Promise.race([sleepFor(intervalMs, { signal }).catch(() => undefined), this.#wake.promise]);
    }
  }

  async #attempt(): Promise<void> {
    try {
      const problem = await this.#compare();
      this.#context.metrics.admissionRegistered.set(problem === undefined ? 1 : 0);
      this.#log(problem);
    } catch (error) {
      // 409: something else has changed the configuration, which is read again.
      if (this.#closing.signal.aborted || hasStatus(error, 409)) return;
      this.#context.metrics.admissionRegistered.set(0);
      this.#log(describeApiError(error, { verb: 'get and patch', resource, namespace: '' }));
    }
  }

  /** Undefined when the configuration has our authorities. */
  async #compare(): Promise<string | undefined> {
    const { api, name, tls, leadership } = this.#options;
    const wanted = tls.current().ca?.toString('base64');
    if (wanted === undefined) return 'there is no certificate yet';
    const limits = { timeoutMs, signal: this.#closing.signal };
    const found = await api.get(resource, { namespace: '', name }, limits);
    if (found === undefined) return `there is no ${resource.kind} ${name}`;
    const { metadata, webhooks } = requireRecord(found, resource.kind);
    const bundle = findBundle(webhooks);
    if (bundle === undefined) return `the ${resource.kind} ${name} has no webhook ${webhookName}`;
    if (bundle === wanted) return undefined;
    if (leadership?.isLeader() === false) return 'the leader has not written our authorities yet';
    const { resourceVersion } = requireRecord(metadata, 'metadata');
    await api.send({
      method: 'PATCH',
      path: objectPath(resource, { namespace: '', name }),
      // Merges the list by name, so that all else in the configuration belongs to the chart.
      contentType: 'application/strategic-merge-patch+json',
      body: {
        metadata: { resourceVersion },
        webhooks: [{ name: webhookName, clientConfig: { caBundle: wanted } }],
      },
      ...limits,
    });
    this.#context.logger.info({ configuration: name }, 'admission webhook trusts the current authorities');
    return undefined;
  }

  #log(problem: string | undefined): void {
    if (problem !== undefined && problem !== this.#lastProblem)
      this.#context.logger.warn({ reason: problem }, 'admission webhook not registered, retrying');
    this.#lastProblem = problem;
  }
}

/** Undefined without the webhook. */
function findBundle(webhooks: unknown): string | undefined {
  if (!Array.isArray(webhooks)) return undefined;
  const ours = webhooks
    .map((webhook) => requireRecord(webhook, 'webhook'))
    .find(({ name }) => name === webhookName);
  if (ours === undefined) return undefined;
  const { caBundle } = requireRecord(ours.clientConfig, 'webhook: clientConfig');
  return typeof caBundle === 'string' ? caBundle : '';
}
