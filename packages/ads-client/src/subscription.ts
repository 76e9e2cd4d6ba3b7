import type { JsonObject } from '@bufbuild/protobuf';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { runInSlices, type Steps } from '@tollgate/kit/time';
import type { DiscoveryAnswer, DiscoveryMessages, ResponseIdentity } from './protocol.ts';

export type ApplyResult =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly problem: string;
      /** The rest of the update is in force, and reports are about it. */
      readonly isInForce?: true;
    };

/** Metadata of the node that a repeated ACK or NACK adds. */
export interface NodeReport {
  readonly metadata: JsonObject;
  /** Called when the report is sent; otherwise it is collected again. */
  sent(): void;
}

/** Applies resources of one type. It works in slices and rejects when `signal` aborts. */
export interface ResourceSubscriber<Update extends ResponseIdentity> {
  /** Full name of the message that resources are. */
  readonly typeName: string;
  /**
   * Decodes the update and puts it into force, or says why it is invalid. Parts of a rejected one
   * may be in force. A new stream starts with what is in force already, where the server does not
   * know its versions.
   */
  apply(update: Update, signal: AbortSignal): Promise<ApplyResult>;
  /**
   * Versions of the resources in force by name, which an incremental server does not send again;
   * empty for a resource of which only parts are in force. Default none.
   */
  versions?(): ReadonlyMap<string, string>;
  /** Called before each ACK and NACK. */
  onAnswer(accepted: boolean): void;
  /** The server has forgotten what earlier streams have reported. */
  onStream?(): void;
  /** Undefined when there is nothing to report. */
  collectReport?(signal: AbortSignal): Promise<NodeReport | undefined>;
}

interface SubscriptionOptions<Update extends ResponseIdentity> {
  readonly subscriber: ResourceSubscriber<Update>;
  readonly messages: DiscoveryMessages<Update>;
  readonly server: string;
  readonly logger: Logger;
  readonly sleep: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
  readonly signal: AbortSignal;
  /** Called when a set was accepted. */
  readonly onAccepted: () => void;
}

/** Decoding a large set takes a while, and requests are answered meanwhile. */
const sliceMs = 5;

/**
 * Delays the reply to a server that resends what was rejected, which would otherwise loop a
 * thousand times a second.
 */
const repeatedRejectionDelayMs = 1_000;

/** Bound of the text of a rejection, which servers show in the status of a resource. */
const maxProblemLength = 4_096;

/** The client's side of the protocol: the active version, across all streams. */
export class Subscription<Update extends ResponseIdentity> {
  readonly #options: SubscriptionOptions<Update>;
  /** Undefined until a first set is accepted. */
  #activeVersion: string | undefined;
  #rejectedContent: string | undefined;
  /** The answer to the last response of the stream, if that is in force. */
  #answer: DiscoveryAnswer | undefined;

  constructor(options: SubscriptionOptions<Update>) {
    this.#options = options;
  }

  /** Returns the first request of the stream. */
  startStream(): Uint8Array {
    const { subscriber, messages } = this.#options;
    this.#answer = undefined;
    subscriber.onStream?.();
    return messages.subscription(subscriber.versions?.() ?? new Map());
  }

  /**
   * Applies or rejects a response, and returns the ACK or NACK.
   *
   * @throws Error when the bytes are not a response, or the signal aborts.
   */
  async handle(response: Uint8Array): Promise<Uint8Array> {
    const { messages, subscriber, sleep, signal } = this.#options;
    const decoded = await runAbortable(messages.decode(response), signal);
    const identity = decoded.ok ? decoded.update : decoded.identity;
    if (identity.content === this.#rejectedContent) await sleep(repeatedRejectionDelayMs, { signal });
    const result = decoded.ok ? await subscriber.apply(decoded.update, signal) : decoded;
    return result.ok ? this.#accept(identity) : this.#reject(identity, result);
  }

  /** The request with a report; undefined when there is nothing to report. Never rejects. */
  async report(): Promise<Uint8Array | undefined> {
    const { subscriber, messages, signal, logger } = this.#options;
    const answer = this.#answer;
    if (answer === undefined) return undefined;
    try {
      const report = await subscriber.collectReport?.(signal);
      // Another response has arrived meanwhile: the server would ignore the nonce.
      if (report === undefined || this.#answer !== answer) return undefined;
      report.sent();
      return messages.answer(answer, report.metadata);
    } catch (error) {
      logger.debug({ reason: getErrorMessage(error) }, 'did not report to the management server');
      return undefined;
    }
  }

  #accept({ version, nonce }: ResponseIdentity): Uint8Array {
    const { subscriber, messages, onAccepted } = this.#options;
    this.#activeVersion = version;
    this.#answer = { version, nonce };
    this.#rejectedContent = undefined;
    subscriber.onAnswer(true);
    onAccepted();
    return messages.answer(this.#answer);
  }

  #reject(
    { version, nonce, content }: ResponseIdentity,
    { problem, isInForce }: Pick<Extract<ApplyResult, { ok: false }>, 'problem' | 'isInForce'>,
  ): Uint8Array {
    const { subscriber, messages, logger, server } = this.#options;
    this.#rejectedContent = content;
    subscriber.onAnswer(false);
    const kept = this.#activeVersion ?? '';
    const message = truncate(problem);
    logger.error({ server, version, kept, problem: message }, 'configuration rejected');
    const answer = { version: kept, nonce, problem: message };
    this.#answer = isInForce ? answer : undefined;
    return messages.answer(answer);
  }
}

/** Runs the steps in slices until the signal aborts. */
export function runAbortable<T>(steps: Steps<T>, signal: AbortSignal): Promise<T> {
  return runInSlices(untilAborted(steps, signal), { sliceMs });
}

function* untilAborted<T>(steps: Steps<T>, signal: AbortSignal): Steps<T> {
  for (;;) {
    signal.throwIfAborted();
    const step = steps.next();
    if (step.done === true) return step.value;
    yield;
  }
}

function truncate(text: string): string {
  return text.length > maxProblemLength ? `${text.slice(0, maxProblemLength - 1)}…` : text;
}
