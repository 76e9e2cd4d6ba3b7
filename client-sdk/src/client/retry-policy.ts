import type { ApiResponse } from '../response/api-response.ts';
import type { RequestContext } from './hooks.ts';

/**
 * Calls `attempt` until its outcome is to be kept. Each attempt authenticates the client and signs anew. An attempt resolves with
 * the response whatever its status, and rejects with a TransportError when none came; turning a status into an error comes later.
 */
export type RetryPolicy = (
  context: RequestContext,
  attempt: (attemptNumber: number) => Promise<ApiResponse>,
  onRetry: (event: { readonly attempt: number; readonly delayMs: number; readonly reason: string }) => void,
) => Promise<ApiResponse>;
