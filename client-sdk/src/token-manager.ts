/**
 * Tokens that stay fresh, one renewal for all who wait, shared between processes.
 *
 * @module
 */
export type { ReplayableInit } from './token-manager/fetch-replay.ts';
export { memoryTokenStore } from './token-manager/memory-token-store.ts';
export type { AcquireToken } from './token-manager/obtain-token.ts';
export { TokenManager, type TokenManagerOptions } from './token-manager/token-manager.ts';
export type {
  SetOutcome,
  TokenLease,
  TokenRecord,
  TokenStore,
  VersionedRecord,
} from './token-manager/token-store.ts';
