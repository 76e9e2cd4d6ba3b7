/**
 * Retries that understand OAuth.
 *
 * @module
 */
export { createRetryPolicy, type RetryOptions } from './retry/create-retry-policy.ts';
export type { Sleep } from './retry/sleep.ts';
