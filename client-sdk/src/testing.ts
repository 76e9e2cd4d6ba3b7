/**
 * An authorization server for tests, in the process or on a loopback port.
 *
 * @module
 */
export {
  type AuthorizationServer,
  createAuthorizationServer,
  type RecordedRequest,
} from './testing/authorization-server.ts';
export type { AuthorizationDecision, EndpointName, TokenAnswer } from './testing/endpoints.ts';
export type { Fault } from './testing/faults.ts';
export {
  type StartedAuthorizationServer,
  type StartOptions,
  startAuthorizationServer,
  type TlsOptions,
} from './testing/listen.ts';
export type { AuthorizationServerOptions, TestClient, TestUser } from './testing/settings.ts';
export { type MakeStores, type TokenStoreRule, tokenStoreContract } from './testing/token-store-contract.ts';
