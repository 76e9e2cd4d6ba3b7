import { RecentlyUsed } from '@tollgate/kit/collections';
import { isAppError } from '@tollgate/kit/errors';
import type { Settings } from '../config/settings.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { networkKey } from '../limits/network-key.ts';
import { fetchResponse } from '../outbound/fetch.ts';
import {
  DocumentProblem,
  documentClientId,
  documentLifetimeMs,
  isDocumentUrl,
  readDocument,
} from './client-document.ts';
import { applyInput, newClient, readClientType } from './client-input.ts';
import type { OAuthClient, StoredClient } from './client-store.ts';
import { anyone, clientAudit, describeUpdate, type OAuthContext } from './clients.ts';

/** The draft recommends 5 KiB; key sets need more. */
const maxBytes = 16 * 1024;
const timeoutMs = 5_000;
/** Fetches at a time. */
const maxFetches = 32;
const busyRetrySeconds = 2;
/** After a failure, a client that is known is not asked again for this time. */
const cooldownMs = 30_000;
const maxFailures = 1_000;

/**
 * Clients whose `client_id` is the URL of their metadata. The database has the last document of
 * each, for all replicas, so that consents and sessions have a client as others do.
 *
 * @see https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/
 */
export class ClientDocuments {
  readonly #context: OAuthContext;
  readonly #loading = new Map<string, Promise<StoredClient>>();
  readonly #failedMs = new RecentlyUsed<number>({ capacity: maxFailures });

  constructor(context: OAuthContext) {
    this.#context = context;
  }

  /**
   * The client of a URL, with its current document. With `allowsExpired`, a client that has
   * authenticated before stays while its host does not answer.
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
    if (known !== undefined && (known.document_expires_at?.getTime() ?? 0) > nowMs) return known;
    const stored = allowsExpired ? known : undefined;
    if (stored !== undefined && nowMs < (this.#failedMs.get(url) ?? 0) + cooldownMs) return stored;
    try {
      return await this.#loadOnce(url, known, metadata);
    } catch (error) {
      if (stored === undefined) throw error;
      this.#failedMs.set(url, nowMs);
      return stored;
    }
  }

  /** Concurrent requests share a fetch. */
  async #loadOnce(
    url: string,
    known: StoredClient | undefined,
    metadata: RequestMetadata,
  ): Promise<StoredClient> {
    const loading = this.#loading.get(url);
    if (loading !== undefined) return loading;
    if (this.#loading.size >= maxFetches)
      throw new RetryLaterError(errors.over_request_rate_limit(), busyRetrySeconds);
    const started = this.#load(url, known, metadata).finally(() => this.#loading.delete(url));
    this.#loading.set(url, started);
    return started;
  }

  async #load(
    url: string,
    known: StoredClient | undefined,
    metadata: RequestMetadata,
  ): Promise<StoredClient> {
    const { limiter } = this.#context;
    const { clientNetwork, nowMs } = metadata;
    await limiter.enforce('client_document', { key: networkKey(clientNetwork), nowMs });
    const { text, headers } = await this.#fetch(url);
    const members = this.#read(url, text, known);
    const expiresAt = new Date(nowMs + documentLifetimeMs(headers));
    await this.#save({ ...members, document_expires_at: expiresAt }, known, metadata);
    const saved = await this.#context.store.oauthClients.find(members.id);
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

  #read(url: string, text: string, known: StoredClient | undefined): OAuthClient {
    const { settings, nowMs } = this.#context;
    const at = new Date(nowMs());
    const input = readDocument(url, text);
    const created = { id: documentClientId(url), client_secret_hash: '', created_at: at, updated_at: at };
    const before = known ?? { ...newClient, ...created, registration_type: 'dynamic' };
    try {
      return applyInput({ ...before, ...readClientType(input), document_url: url }, input, settings);
    } catch (error) {
      if (isAppError(error) && error.code === 'validation_failed') throw new DocumentProblem(error.message);
      throw error;
    }
  }

  /** Another replica may do the same: the result of either stays. */
  async #save(
    client: OAuthClient,
    known: StoredClient | undefined,
    metadata: RequestMetadata,
  ): Promise<void> {
    const { oauthClients } = this.#context.store;
    const request = { actor: anyone, metadata };
    if (known === undefined) {
      await oauthClients.insert(client, clientAudit('oauth_client_created', client, request));
      return;
    }
    const traits = describeUpdate(known, client);
    if (traits.changed.length === 0) await oauthClients.touchDocument(client.id, client.document_expires_at);
    else {
      const audit = clientAudit('oauth_client_updated', client, request, traits);
      const updated = { ...client, version: known.version, updated_at: new Date(metadata.nowMs) };
      await oauthClients.update(updated, audit);
    }
  }
}

function isAllowedHost(url: string, { oauthServerDocumentHosts: hosts }: Settings): boolean {
  return hosts.length === 0 || hosts.includes(new URL(url).hostname);
}

/** Whether the text names a client by the URL of its document, and the settings allow it. */
export function namesDocument(clientId: string, { oauthServerAllowDocuments }: Settings): boolean {
  return oauthServerAllowDocuments && isDocumentUrl(clientId);
}
