import { getErrorMessage } from '@tollgate/kit/errors';
import { trimDetails } from '@tollgate/kit/grpc/library';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { TlsValidity } from '@tollgate/kit/tls';
import { type ChannelTls, type ChannelTlsOptions, plaintextChannel, watchChannelTls } from './channel-tls.ts';
import type { DiscoveryNode, DiscoveryProtocol, ResponseIdentity } from './protocol.ts';
import { ReconnectBackoff, type ReconnectBackoffOptions } from './reconnect-backoff.ts';
import { type AdsStreamOptions, type EndedStream, followStream } from './stream.ts';
import { type ResourceSubscriber, Subscription } from './subscription.ts';

export interface AdsClientOptions<Update extends ResponseIdentity> {
  /** `stateOfTheWorld` or `incremental`. */
  readonly protocol: DiscoveryProtocol<Update>;
  readonly node: DiscoveryNode;
  readonly stream: AdsStreamOptions;
  /** Undefined for plaintext. */
  readonly tls: ChannelTlsOptions | undefined;
  readonly backoff: ReconnectBackoffOptions;
  /** Interval of reports in repeated ACKs; 0 for none. */
  readonly reportIntervalMs: number;
  /** The setting of the largest response, for the log. */
  readonly maxMessageSetting: string;
}

export interface AdsClientContext {
  /** A number in [0, 1), for the jitter of pauses. Default `Math.random`. */
  readonly random?: () => number;
  readonly logger: Logger;
  /** Called when the first response of a stream was handled, and when the stream ends. */
  readonly onConnected: (connected: boolean) => void;
  readonly onCertificate: (validity: TlsValidity) => void;
  /** Resolves after that time, rejects when the signal aborts. */
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** Interval of the warning while the start waits; default 30 seconds. */
  readonly waitLogMs?: number;
}

/**
 * Receives all resources of one type from a management server over ADS. What is in force stays
 * while the server is unreachable.
 */
export class AdsClient<Update extends ResponseIdentity> {
  readonly #options: AdsClientOptions<Update>;
  readonly #context: AdsClientContext;
  readonly #logger: Logger;
  readonly #sleep: NonNullable<AdsClientContext['sleep']>;
  readonly #backoff: ReconnectBackoff;
  readonly #closing = new AbortController();
  readonly #firstSet = Promise.withResolvers<void>();
  #following: Promise<void> = Promise.resolve();
  #tls: ChannelTls | undefined;

  constructor(options: AdsClientOptions<Update>, context: AdsClientContext) {
    this.#options = options;
    this.#context = context;
    this.#logger = context.logger;
    this.#sleep = context.sleep ?? sleepFor;
    this.#backoff = new ReconnectBackoff(options.backoff, context.random);
  }

  /**
   * Reads the TLS files, which `start` does otherwise.
   *
   * @throws Error, naming the file, when they are invalid.
   */
  async open(): Promise<void> {
    this.#tls ??= await this.#watchTls();
  }

  /**
   * Resolves when a first set was accepted, or soon after `signal` aborts or `close` is called.
   *
   * @throws Error, naming the file, when the TLS files are invalid.
   */
  async start(
    subscriber: ResourceSubscriber<Update>,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<void> {
    const { waitLogMs = 30_000 } = this.#context;
    const { serverUrl: server } = this.#options.stream;
    const tls = this.#tls ?? (await this.#watchTls());
    this.#following = this.#follow(tls, subscriber);
    const onAbort = (): void => void this.close();
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    const waiting = setInterval(
      () => this.#logger.warn({ server }, 'waiting for the first configuration of the management server'),
      waitLogMs,
    );
    await this.#firstSet.promise;
    clearInterval(waiting);
    signal?.removeEventListener('abort', onAbort);
  }

  /** Resolves once no set is applied any more; idempotent. */
  close(): Promise<void> {
    this.#closing.abort();
    this.#firstSet.resolve();
    // Without a start, nothing else closes them.
    return this.#following.finally(() => this.#tls?.close());
  }

  async #watchTls(): Promise<ChannelTls> {
    const { tls } = this.#options;
    const { logger, onCertificate } = this.#context;
    return tls === undefined ? plaintextChannel : await watchChannelTls(tls, { logger, onCertificate });
  }

  async #follow(tls: ChannelTls, subscriber: ResourceSubscriber<Update>): Promise<void> {
    const { protocol, stream, node, reportIntervalMs } = this.#options;
    const { signal } = this.#closing;
    const subscription = new Subscription({
      subscriber,
      messages: protocol.createMessages(subscriber.typeName, node),
      server: stream.serverUrl,
      logger: this.#logger,
      sleep: this.#sleep,
      signal,
      onAccepted: () => this.#firstSet.resolve(),
    });
    while (!signal.aborted) {
      const ended = await followStream(stream, {
        path: protocol.path,
        credentials: tls.credentials,
        subscription: subscription.startStream(),
        onResponse: (response) => subscription.handle(response),
        onDelivered: () => this.#onDelivered(),
        onReportDue: () => subscription.report(),
        reportIntervalMs,
        signal,
      });
      this.#context.onConnected(false);
      if (signal.aborted) break;
      const delayMs = Math.round(this.#backoff.delayAfterMs(ended));
      this.#logEnd(ended, delayMs);
      await this.#sleep(delayMs, { signal }).catch(() => undefined);
    }
    tls.close();
  }

  #onDelivered(): void {
    this.#context.onConnected(true);
    this.#logger.info({ server: this.#options.stream.serverUrl }, 'connected to the management server');
  }

  /** Servers end streams of a certain age, so the end of one that had delivered is an info. */
  #logEnd(ended: EndedStream, delayMs: number): void {
    const logger = this.#logger;
    const { stream, maxMessageSetting } = this.#options;
    const { serverUrl: server, maxMessageBytes } = stream;
    const reason = getEndReason(ended.error);
    const fields = { server, reason, delayMs };
    if (tooLarge.test(reason))
      logger.error(
        { ...fields, maxMessageBytes, setting: maxMessageSetting },
        'configuration larger than the maximum, keeping the active one',
      );
    else if (ended.delivered) logger.info(fields, 'management server ended the stream');
    else if (ended.connected)
      logger.warn(fields, 'management server ended the stream without a configuration');
    else logger.warn(fields, 'management server unreachable');
  }
}

/** The message of @grpc/grpc-js, which has no code for it. */
const tooLarge = /larger than/i;

function getEndReason(error: unknown): string {
  if (error === undefined) return 'ended by the server';
  return trimDetails(getErrorMessage(error));
}
