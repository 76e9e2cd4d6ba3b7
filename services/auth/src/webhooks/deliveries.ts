import { getErrorMessage } from '@tollgate/kit/errors';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { type Millis, sleepFor } from '@tollgate/kit/time';
import { parseSecrets } from '../config/hook-definitions.ts';
import type { Settings } from '../config/settings.ts';
import { signedHeaders } from '../hooks/http.ts';
import { postText } from '../outbound/fetch.ts';
import type { SessionsContext } from '../sessions/issue.ts';
import type { EventStore, StoredEvent } from './store.ts';

export type WebhooksContext = SessionsContext & { readonly store: { readonly events: EventStore } };

/** Events of different users that are delivered concurrently. */
const batchSize = 20;
/** Time between two looks for events when there were none. */
const idleMs = 1_000;
const timeoutMs = 10_000;
/** Longer than a delivery: another replica may take the event over afterwards. */
const claimMs = 60_000;
const retryForMs = 3 * 24 * 3_600_000;
const firstDelayMs = 5_000;
const maxDelayMs = 6 * 3_600_000;
const maxErrorChars = 500;

/** 5 s, then three times as long after each attempt, up to 6 h. */
export function retryDelayMs(attempts: number): Millis {
  return Math.min(firstDelayMs * 3 ** (attempts - 1), maxDelayMs);
}

/**
 * Delivers events to the webhook: at least once, and in order for each user. All replicas deliver.
 *
 * @see docs/decisions/0055-event-webhooks.md
 */
export class EventDeliveries implements LifecycleComponent {
  readonly name = 'event webhooks';
  readonly #context: WebhooksContext;
  readonly #secrets: readonly Buffer[];
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(context: WebhooksContext) {
    const parsed = parseSecrets(context.settings.eventWebhookSecrets);
    this.#context = context;
    this.#secrets = parsed.ok ? parsed.value : [];
  }

  /** @throws Error if changes would not write events: a connection pooler drops the parameter. */
  async start(): Promise<void> {
    if (!(await this.#context.store.events.isRecording()))
      throw new Error(
        'event webhooks need the startup parameter tollgate.events: connect to PostgreSQL without a pooler that drops it',
      );
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const delivered = await this.#deliverBatch().catch((error: unknown) => {
        this.#context.logger.error({ err: error }, 'failed to read events');
        return 0;
      });
      if (delivered === 0) await sleepFor(idleMs, { signal }).catch(() => undefined);
    }
  }

  /** Returns the number of delivered events. */
  async #deliverBatch(): Promise<number> {
    const { store, nowMs } = this.#context;
    const now = nowMs();
    const events = await store.events.claim(new Date(now), {
      until: new Date(now + claimMs),
      retryUntil: new Date(now + retryForMs),
      limit: batchSize,
    });
    const delivered = await Promise.all(events.map((event) => this.#deliver(event)));
    return delivered.filter(Boolean).length;
  }

  async #deliver(event: StoredEvent): Promise<boolean> {
    const { store, settings, metrics, nowMs } = this.#context;
    try {
      await postEvent(event, { settings, secrets: this.#secrets, nowMs });
    } catch (error) {
      await this.#reschedule(event, error);
      return false;
    }
    await store.events.finish(event);
    metrics.eventDeliveries.inc({ result: 'delivered' });
    return true;
  }

  async #reschedule(event: StoredEvent, cause: unknown): Promise<void> {
    const { store, metrics, logger, nowMs } = this.#context;
    const error = getErrorMessage(cause).slice(0, maxErrorChars);
    const nextMs = nowMs() + retryDelayMs(event.attempts);
    const isGivenUp = nextMs > event.retryUntil.getTime();
    await store.events.reschedule(event, {
      at: new Date(nowMs()),
      nextAttemptAt: isGivenUp ? undefined : new Date(nextMs),
      error,
    });
    const { eventId, type, attempts } = event;
    metrics.eventDeliveries.inc({ result: isGivenUp ? 'abandoned' : 'failed' });
    if (isGivenUp) logger.error({ eventId, type, attempts, error }, 'gave up delivering event');
    else logger.warn({ eventId, type, attempts, error }, 'failed to deliver event');
  }
}

async function postEvent(
  { eventId, type, createdAt, data }: StoredEvent,
  {
    settings,
    secrets,
    nowMs,
  }: {
    readonly settings: Settings;
    readonly secrets: readonly Buffer[];
    readonly nowMs: () => number;
  },
): Promise<void> {
  const body = JSON.stringify({ type, timestamp: createdAt.toISOString(), data });
  await postText(new URL(settings.eventWebhookUri), {
    body,
    headers: signedHeaders({ id: eventId, body, nowMs }, secrets),
    privateHosts: settings.eventWebhookPrivateHosts,
    timeoutMs,
  });
}
