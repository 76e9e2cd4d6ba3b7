import { getErrorMessage } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { type Millis, sleepFor } from '@tollgate/kit/time';
import { parseSecrets } from '../config/hook-definitions.ts';
import type { Settings } from '../config/settings.ts';
import { signedHeaders } from '../hooks/http.ts';
import { sendLogoutToken } from '../oauth/back-channel-logout.ts';
import type { OAuthContext } from '../oauth/clients.ts';
import { postText } from '../outbound/fetch.ts';
import { type EventStore, type StoredEvent, settingsWebhookId } from './store.ts';
import { signingSecrets, type WebhookStore } from './webhook-store.ts';

export type WebhooksContext = OAuthContext & {
  readonly store: { readonly events: EventStore; readonly webhooks: WebhookStore };
};

/** Events of different subjects that are delivered concurrently. */
const batchSize = 20;
/** OAuth clients that get logout tokens concurrently: bounds the connections with `batchSize`. */
const maxClients = 50;
const clientsName = 'oauth_clients';
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

/** Where events are posted to. */
interface Target {
  readonly url: string;
  readonly secrets: readonly Buffer[];
}

interface Endpoint {
  readonly id: string;
  readonly name: string;
  /** Whether it has a row, which shows the last delivery. */
  readonly isStored: boolean;
  /** Throws if the event has to be delivered again. */
  readonly deliver: (event: StoredEvent) => Promise<void>;
}

/** The endpoint as it is now; undefined if it does not exist any more. */
type FindEndpoint = () => Endpoint | undefined | Promise<Endpoint | undefined>;

/**
 * Delivers events to each endpoint: at least once, and in order for each subject. All replicas
 * deliver. Endpoints do not wait for each other; each OAuth client that gets logout tokens is one.
 *
 * @see docs/decisions/0055-event-webhooks.md
 * @see docs/decisions/0102-several-webhooks.md
 */
export class EventDeliveries implements LifecycleComponent {
  readonly name = 'event webhooks';
  readonly #context: WebhooksContext;
  readonly #fromSettings: Endpoint | undefined;
  readonly #stopping = new AbortController();
  /** Batches that are being delivered, by endpoint, and those of OAuth clients. */
  readonly #batches = new Map<string, Promise<void>>();
  readonly #clientBatches = new Map<string, Promise<void>>();
  /** Names of the endpoints that metrics have. */
  #names: ReadonlySet<string> = new Set();
  #wake: AbortController = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(context: WebhooksContext) {
    const { eventWebhookUri: url, eventWebhookSecrets } = context.settings;
    const parsed = parseSecrets(eventWebhookSecrets);
    const secrets = parsed.ok ? parsed.value : [];
    this.#context = context;
    this.#fromSettings =
      url === '' ? undefined : this.#webhook({ id: settingsWebhookId, name: 'settings', url, secrets });
  }

  /** Whether there may be anything to deliver. */
  static isNeeded({ settings }: Pick<WebhooksContext, 'settings'>): boolean {
    return hasWebhooks(settings) || settings.oauthServerEnabled;
  }

  /** @throws Error if changes would not write events: a connection pooler drops the parameter. */
  async start(): Promise<void> {
    const { store, settings } = this.#context;
    if (hasWebhooks(settings) && !(await store.events.isRecording()))
      throw new Error(
        'event webhooks need the startup parameter tollgate.events: connect to PostgreSQL without a pooler that drops it',
      );
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.all([...this.#batches.values(), ...this.#clientBatches.values()]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.#startBatches().catch((error: unknown) => this.#logFailure(error));
      const woken = AbortSignal.any([signal, this.#wake.signal]);
      await sleepFor(idleMs, { signal: woken }).catch(() => undefined);
    }
  }

  /** Starts a batch for each endpoint that has events, unless its last one is still running. */
  async #startBatches(): Promise<void> {
    const { store, settings, nowMs } = this.#context;
    const now = new Date(nowMs());
    const webhooks = await store.events.pending(now, {
      fromSettings: this.#fromSettings !== undefined,
      fromApi: settings.eventWebhooksEnabled,
    });
    const names = webhooks.map(({ name }) => name);
    this.#updateMetrics(new Set(settings.oauthServerEnabled ? [...names, clientsName] : names));
    for (const { id, isDue } of webhooks)
      if (isDue) this.#startBatch(id, this.#batches, () => this.#findWebhook(id));
    if (!settings.oauthServerEnabled) return;
    for (const id of await store.events.dueClients(now, maxClients))
      if (this.#clientBatches.size < maxClients)
        this.#startBatch(id, this.#clientBatches, () => this.#client(id));
  }

  #startBatch(id: string, running: Map<string, Promise<void>>, find: FindEndpoint): void {
    if (running.has(id)) return;
    const batch = this.#deliverBatch(id, find).catch((error: unknown) => this.#logFailure(error));
    running.set(id, batch);
    void batch.finally(() => running.delete(id));
  }

  #updateMetrics(names: ReadonlySet<string>): void {
    const { metrics } = this.#context;
    for (const name of names) if (!this.#names.has(name)) metrics.addEndpoint(name);
    for (const name of this.#names) if (!names.has(name)) metrics.removeEndpoint(name);
    this.#names = names;
  }

  #logFailure(error: unknown): void {
    this.#context.logger.error({ err: error }, 'failed to read events');
  }

  async #deliverBatch(id: string, find: FindEndpoint): Promise<void> {
    const { store, nowMs } = this.#context;
    const now = nowMs();
    const endpoint = await find();
    if (endpoint === undefined) return;
    const events = await store.events.claim(new Date(now), {
      webhookId: id,
      until: new Date(now + claimMs),
      retryUntil: new Date(now + retryForMs),
      limit: batchSize,
    });
    const delivered = await Promise.all(events.map((event) => this.#deliver(event, endpoint)));
    // Only progress is a reason to look again at once: events may wait for earlier ones.
    if (delivered.includes(true)) this.#wake.abort();
  }

  /** The endpoint as it is now: its secrets may have been rotated. */
  async #findWebhook(id: string): Promise<Endpoint | undefined> {
    if (id === settingsWebhookId) return this.#fromSettings;
    const { store, nowMs } = this.#context;
    const webhook = await store.webhooks.find(id);
    if (webhook === undefined) return undefined;
    const { name, url } = webhook;
    return this.#webhook({ id, name, url, secrets: signingSecrets(webhook, nowMs()) });
  }

  #webhook({ id, name, ...target }: Target & Pick<Endpoint, 'id' | 'name'>): Endpoint {
    const deliver = (event: StoredEvent) => postEvent(toMessage(event), target, this.#context);
    return { id, name, isStored: id !== settingsWebhookId, deliver };
  }

  #client(id: string): Endpoint {
    const deliver = ({ data }: StoredEvent) =>
      sendLogoutToken(this.#context, {
        clientId: id,
        userId: String(data.sub),
        sessionId: String(data.sid),
      });
    return { id, name: clientsName, isStored: false, deliver };
  }

  async #deliver(event: StoredEvent, endpoint: Endpoint): Promise<boolean> {
    const { store, metrics, nowMs } = this.#context;
    try {
      await endpoint.deliver(event);
    } catch (error) {
      await this.#reschedule(event, endpoint, error);
      return false;
    }
    await store.events.finish(event);
    if (endpoint.isStored) await store.webhooks.recordDelivery(endpoint.id, new Date(nowMs()));
    metrics.eventDeliveries.inc({ endpoint: endpoint.name, result: 'delivered' });
    return true;
  }

  async #reschedule(event: StoredEvent, endpoint: Endpoint, cause: unknown): Promise<void> {
    const { store, metrics, logger, nowMs } = this.#context;
    const error = getErrorMessage(cause).slice(0, maxErrorChars);
    const at = new Date(nowMs());
    const nextMs = at.getTime() + retryDelayMs(event.attempts);
    const isGivenUp = nextMs > event.retryUntil.getTime();
    await store.events.reschedule(event, {
      at,
      nextAttemptAt: isGivenUp ? undefined : new Date(nextMs),
      error,
    });
    if (endpoint.isStored) await store.webhooks.recordFailure(endpoint.id, { at, error });
    const { eventId, type, attempts } = event;
    const fields = { endpoint: endpoint.name, eventId, type, attempts, error };
    metrics.eventDeliveries.inc({ endpoint: endpoint.name, result: isGivenUp ? 'abandoned' : 'failed' });
    if (isGivenUp) logger.error(fields, 'gave up delivering event');
    else logger.warn(fields, 'failed to deliver event');
  }
}

function hasWebhooks({ eventWebhookUri, eventWebhooksEnabled }: Settings): boolean {
  return eventWebhookUri !== '' || eventWebhooksEnabled;
}

/** A message as endpoints receive it. */
interface EventMessage {
  readonly id: string;
  readonly type: string;
  readonly at: Date;
  readonly data: JsonObject;
}

function toMessage({ eventId, type, createdAt, data }: StoredEvent): EventMessage {
  return { id: eventId, type, at: createdAt, data };
}

/** @throws FetchRejected, or an error of the network. */
export async function postEvent(
  { id, type, at, data }: EventMessage,
  { url, secrets }: Target,
  { settings, nowMs }: Pick<WebhooksContext, 'settings' | 'nowMs'>,
): Promise<void> {
  const body = JSON.stringify({ type, timestamp: at.toISOString(), data });
  await postText(new URL(url), {
    body,
    headers: signedHeaders({ id, body, nowMs }, secrets),
    privateHosts: settings.eventWebhookPrivateHosts,
    timeoutMs,
  });
}
