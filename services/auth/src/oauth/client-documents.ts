import { RecentlyUsed } from '@tollgate/kit/collections';
import { isAppError } from '@tollgate/kit/errors';
import type { Settings } from '../config/settings.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { networkKey } from '../limits/network-key.ts';
import { Slots } from '../limits/slots.ts';
import { fetchResponse } from '../outbound/fetch.ts';
import {
  DocumentProblem,
  documentClientId,
  documentLifetimeMs,
  isDocumentUrl,
  readDocument,
} from './client-document.ts';
import { applyInput, type ClientInput, newClient, readClientType } from './client-input.ts';
import type { OAuthClient, StoredClient } from './client-store.ts';
import { anyone, clientAudit, describeUpdate, type OAuthContext } from './clients.ts';

/** The draft recommends 5 KiB; key sets need more. */
const maxBytes = 16 * 1024;
const timeoutMs = 5_000;
/** Fetches at a time: slow hosts, and networks that name them, must not hold those of others. */
const maxFetches = { all: 64, network: 4, host: 8 } as const;
const busyRetrySeconds = 2;
/** How long a document is used after it has expired, while it cannot be fetched for this reason. */
const maxStaleMs = 60 * 60_000;
/** An administrator may change the client while its document is stored. */
const maxAttempts = 3;
/** After a failure, a client that is known is not asked again for this time. */
const cooldownMs = 30_000;
const maxFailures = 1_000;

interface FetchedDocument {
  readonly url: string;
  readonly input: ClientInput;
  readonly expiresAt: Date;
}

/**
 * Clients whose `client_id` is the URL of their metadata. The database has the last document of
 * each, for all replicas, so that consents and sessions have a client as others do.
 *
 * @see https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/
 */
export class ClientDocuments {
  readonly #context: OAuthContext;
  readonly #loading = new Map<string, Promise<StoredClient>>();
  readonly #slots = new Slots();
  readonly #failedMs = new RecentlyUsed<number>({ capacity: maxFailures });

  constructor(context: OAuthContext) {
    this.#context = context;
  }

  /**
   * The client of a URL, with its current document; for an hour also with one that has expired, if
   * too many are fetched. With `allowsExpired`, a client that has authenticated before stays while
   * its host does not answer.
   *
   * @throws DocumentProblem, AppError `over_request_rate_limit`
   */
  async find(
    url: string,
    metadata: RequestMetadata,
    { allowsExpired }: { readonly allowsExpired: boolean },
  ): Promise<StoredClient> {
    const { settings, store } = this.#context;
    if (!isAllowedHost(url, settings)) throw new DocumentProblem('its host is not allowed');
    const known = await store.oauthClients.find(documentClientId(url));
    const { nowMs } = metadata;
    const expiredMs = nowMs - (known?.document_expires_at?.getTime() ?? 0);
    if (known !== undefined && expiredMs < 0) return known;
    const stored = allowsExpired ? known : undefined;
    if (stored !== undefined && nowMs < (this.#failedMs.get(url) ?? 0) + cooldownMs) return stored;
    try {
      return await this.#loadOnce(url, metadata);
    } catch (error) {
      if (known !== undefined && error instanceof RetryLaterError && expiredMs < maxStaleMs) return known;
      if (stored === undefined) throw error;
      this.#failedMs.set(url, nowMs);
      return stored;
    }
  }

  /** Concurrent requests share a fetch. */
  async #loadOnce(url: string, metadata: RequestMetadata): Promise<StoredClient> {
    const loading = this.#loading.get(url);
    if (loading !== undefined) return loading;
    const bounds = [
      { key: 'all', max: maxFetches.all },
      { key: `network ${metadata.clientNetwork ?? ''}`, max: maxFetches.network },
      { key: `host ${new URL(url).host}`, max: maxFetches.host },
    ];
    const started = this.#slots
      .run(bounds, () => this.#load(url, metadata))
      ?.finally(() => this.#loading.delete(url));
    if (started === undefined) throw new RetryLaterError(errors.over_request_rate_limit(), busyRetrySeconds);
    this.#loading.set(url, started);
    return started;
  }

  async #load(url: string, metadata: RequestMetadata): Promise<StoredClient> {
    const { limiter } = this.#context;
    const { clientNetwork, nowMs } = metadata;
    await limiter.enforce('client_document', { key: networkKey(clientNetwork), nowMs });
    const { text, headers } = await this.#fetch(url);
    const document = {
      url,
      input: readDocument(url, text),
      expiresAt: new Date(nowMs + documentLifetimeMs(headers)),
    };
    for (let attempt = 1; attempt <= maxAttempts; attempt++)
      if (await this.#save(document, metadata)) return this.#findSaved(url);
    throw errors.conflict();
  }

  async #findSaved(url: string): Promise<StoredClient> {
    const saved = await this.#context.store.oauthClients.find(documentClientId(url));
    // An administrator has deleted it: it does not come back.
    if (saved === undefined) throw new DocumentProblem('the client was deleted');
    return saved;
  }

  async #fetch(url: string) {
    const { settings, logger } = this.#context;
    try {
      return await fetchResponse(new URL(url), {
        privateHosts: settings.oauthServerPrivateHosts,
        headers: { accept: 'application/json' },
        // A redirect could lead to a document of another host, which must not speak for this one.
        maxRedirects: 0,
        requiresHttps: true,
        timeoutMs,
        maxBytes,
      });
    } catch (error) {
      // The reason may name internal addresses.
      logger.warn({ err: error, url }, 'failed to fetch the metadata document of a client');
      throw new DocumentProblem('it cannot be fetched');
    }
  }

  #apply(
    { url, input, expiresAt }: FetchedDocument,
    known: StoredClient | undefined,
    { nowMs }: RequestMetadata,
  ): OAuthClient {
    const at = new Date(nowMs);
    const created = { id: documentClientId(url), client_secret_hash: '', created_at: at, updated_at: at };
    const before = known ?? { ...newClient, ...created, registration_type: 'dynamic' };
    const own = { ...readClientType(input), document_url: url, document_expires_at: expiresAt };
    try {
      return applyInput({ ...before, ...own }, input, this.#context.settings);
    } catch (error) {
      if (isAppError(error) && error.code === 'validation_failed') throw new DocumentProblem(error.message);
      throw error;
    }
  }

  /**
   * Returns false if the client has changed at the same time. Another replica may insert it: the
   * result of either stays.
   */
  async #save(document: FetchedDocument, metadata: RequestMetadata): Promise<boolean> {
    const { oauthClients } = this.#context.store;
    const known = await oauthClients.find(documentClientId(document.url));
    const client = this.#apply(document, known, metadata);
    const request = { actor: anyone, metadata };
    if (known === undefined) {
      await oauthClients.insert(client, clientAudit('oauth_client_created', client, request));
      return true;
    }
    const traits = describeUpdate(known, client);
    if (traits.changed.length === 0) {
      await oauthClients.touchDocument(client.id, client.document_expires_at);
      return true;
    }
    const audit = clientAudit('oauth_client_updated', client, request, traits);
    const updated = { ...client, version: known.version, updated_at: new Date(metadata.nowMs) };
    return oauthClients.update(updated, audit);
  }
}

function isAllowedHost(url: string, { oauthServerDocumentHosts: hosts }: Settings): boolean {
  return hosts.length === 0 || hosts.includes(new URL(url).hostname);
}

/** Whether the text names a client by the URL of its document, and the settings allow it. */
export function namesDocument(clientId: string, { oauthServerAllowDocuments }: Settings): boolean {
  return oauthServerAllowDocuments && isDocumentUrl(clientId);
}
