import { isUuid } from '@tollgate/kit/text';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { DocumentProblem, isDocumentRedirect } from './client-document.ts';
import { type ClientDocuments, namesDocument } from './client-documents.ts';
import type { OAuthClient, StoredClient } from './client-store.ts';
import { isVisibleAscii } from './client-uris.ts';
import type { OAuthContext } from './clients.ts';

export type FindClientContext = OAuthContext & { readonly clientDocuments: ClientDocuments };

/**
 * The client that `client_id` names: by its id, or by the URL of its metadata document, which has
 * no other name: the id of its row would get around the document. Undefined: there is none, or it
 * is disabled.
 *
 * @throws AppError `oauth_client_not_found` with what is wrong with a document,
 * `over_request_rate_limit`
 */
export async function findClient(
  { settings, store, clientDocuments }: FindClientContext,
  clientId: string,
  {
    metadata,
    allowsExpired = false,
  }: { readonly metadata: RequestMetadata; readonly allowsExpired?: boolean },
): Promise<StoredClient | undefined> {
  const client = isUuid(clientId)
    ? await findRegistered(store, clientId)
    : namesDocument(clientId, settings)
      ? await clientDocuments.find(clientId, metadata, { allowsExpired }).catch(rethrow)
      : undefined;
  return client?.disabled === true ? undefined : client;
}

async function findRegistered(
  { oauthClients }: OAuthContext['store'],
  id: string,
): Promise<StoredClient | undefined> {
  const client = await oauthClients.find(id.toLowerCase());
  return client?.document_url === null ? client : undefined;
}

function rethrow(error: unknown): never {
  if (!(error instanceof DocumentProblem)) throw error;
  const message = `invalid client_id: its metadata document cannot be used: ${error.message}`;
  throw errors.oauth_client_not_found({ httpStatus: 400, message });
}

/** The `client_id` that the client knows. */
export function clientIdentifier({
  id,
  document_url: url,
}: Pick<OAuthClient, 'id' | 'document_url'>): string {
  return url ?? id;
}

/** Whether the client may be answered at a URI. @see RFC 9700 §4.1.3 */
export function isClientRedirect(
  { redirect_uris: uris, document_url: url }: OAuthClient,
  uri: string,
): boolean {
  // GoTrue stores other URIs, too.
  if (!isVisibleAscii(uri)) return false;
  return url === null ? uris.includes(uri) : isDocumentRedirect(uri, uris);
}
