import { OAuthClientError } from './oauth-client-error.ts';

/** No response came: the request did not reach the server, or its answer did not reach us. The base of three errors. */
export class TransportError extends OAuthClientError {
  override readonly name: string = 'TransportError';
}
