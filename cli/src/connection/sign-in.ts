import { randomUUID } from 'node:crypto';
import { type AuthClient, RequestError, unwrap } from '@tollgate/admin-clients/clients';
import { cliClientId } from '@tollgate/admin-clients/first-party';
import {
  Client,
  OAuthClientError,
  OAuthError,
  TokenUnavailableError,
  TransportError,
} from '@tollgate/oauth2-client';
import {
  type SetOutcome,
  TokenManager,
  type TokenRecord,
  type TokenStore,
  type VersionedRecord,
} from '@tollgate/oauth2-client/token-manager';
import { type ContextFile, readContexts, updateContexts } from './contexts.ts';
import { withoutSlash } from './inputs.ts';

/** The OAuth client of the command line, which the settings of the auth server enable. */
export function oauthClient(authUrl: string): Client {
  return new Client({
    clientId: cliClientId,
    // Below the URL of the context, which may be that of a port-forward and not the issuer's.
    site: `${withoutSlash(authUrl)}/`,
    tokenEndpoint: 'oauth/token',
    revocationEndpoint: 'oauth/revoke',
    deviceAuthorizationEndpoint: 'oauth/device_authorization',
  });
}

/** A context of the file. */
export interface ContextName {
  readonly path: string;
  readonly name: string;
}

/** Keeps the tokens of a context in its file, which commands share. */
class ContextTokenStore implements TokenStore {
  readonly #context: ContextName;

  constructor(context: ContextName) {
    this.#context = context;
  }

  async get(): Promise<VersionedRecord | undefined> {
    return find(await readContexts(this.#context.path), this.#context);
  }

  async set(_key: string, record: TokenRecord, expected: string | undefined): Promise<SetOutcome> {
    const { path, name } = this.#context;
    const version = randomUUID();
    const isWritten = await updateContexts(path, (file) => {
      const context = file.contexts[name];
      if (context === undefined || find(file, this.#context)?.version !== expected) return undefined;
      return { ...file, contexts: { ...file.contexts, [name]: { ...context, login: { version, record } } } };
    });
    return isWritten ? { ok: true, version } : { ok: false, reason: 'conflict' };
  }
}

function find({ contexts }: ContextFile, { name }: ContextName): VersionedRecord | undefined {
  return Object.hasOwn(contexts, name) ? contexts[name]?.login : undefined;
}

/** Renews the tokens of a context before they expire, once for all commands. */
export function tokenManager(authUrl: string, context: ContextName): TokenManager {
  return new TokenManager({
    client: oauthClient(authUrl),
    store: new ContextTokenStore(context),
    key: context.name,
  });
}

/** A function that returns a valid access token of the context. It throws RequestError. */
export function tokenSource(authUrl: string, context: ContextName): () => Promise<string> {
  const manager = tokenManager(authUrl, context);
  return async () => {
    try {
      return (await manager.getToken()).token;
    } catch (error) {
      throw error instanceof OAuthClientError ? toRequestError(error, authUrl) : error;
    }
  };
}

/** Explains a failure of the OAuth server to the person at the command line. */
export function toRequestError(error: OAuthClientError, url: string): RequestError {
  if (error instanceof TransportError)
    return new RequestError(`the auth server cannot be reached: ${error.message}`, {
      ...{ code: 'unreachable', url },
    });
  const code = error instanceof OAuthError ? (error.code ?? 'oauth_error') : 'oauth_error';
  if (error instanceof TokenUnavailableError || code === 'invalid_grant')
    return new RequestError('the sign-in has ended: run tollgate login', { code: 'signed_out' });
  if (code === 'invalid_client')
    return new RequestError(
      'the auth server has no client for the command line: set SVC_OAUTH_SERVER_CLI_ENABLED=true there',
      { code },
    );
  return new RequestError(error.message, { code });
}

/** The email address of the person who has signed in, as the auth server says. */
export async function personName(client: AuthClient): Promise<string> {
  const { email, phone_number: phone, sub } = await unwrap(client.GET('/oauth/userinfo'));
  return email || phone || sub;
}
