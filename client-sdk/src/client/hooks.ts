import type { OAuthClientError } from '../errors/oauth-client-error.ts';

/** What a request is for. `resource` carries an access token, `request` is a plain `client.request`. */
export type Operation =
  | 'token'
  | 'revocation'
  | 'introspection'
  | 'device_authorization'
  | 'pushed_authorization'
  | 'discovery'
  | 'resource'
  | 'request';

/** One call as hooks and retry policies see it: nothing secret, the same object from its first event to its last. */
export type RequestContext = {
  readonly operation: Operation;
  /** The `grant_type`, for operation `token`. */
  readonly grantType: string | undefined;
  /** How the client authenticates; undefined where it does not. */
  readonly clientAuth: string | undefined;
  readonly method: string;
  /** Origin and path only: queries may hold tokens. */
  readonly url: string;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
};

/** A request is about to be sent. Attempts count from 1. */
export type RequestEvent = { readonly context: RequestContext; readonly attempt: number };

/** A response came, whatever its status. */
export type ResponseEvent = RequestEvent & {
  readonly status: number;
  readonly durationMs: number;
  readonly code: string | undefined;
};

/** No response came, or one that cannot be used. */
export type ErrorEvent = RequestEvent & { readonly error: OAuthClientError; readonly durationMs: number };

/** The same call will be tried again. */
export type RetryEvent = RequestEvent & { readonly delayMs: number; readonly reason: string };

/**
 * Called as things happen. They observe: what one throws, or its promise rejects with, goes to `onHookError` and changes no
 * result. Nothing waits for a promise. Nothing secret is in any event.
 */
export type ClientHooks = {
  readonly onRequest?: (event: RequestEvent) => void;
  readonly onResponse?: (event: ResponseEvent) => void;
  readonly onError?: (event: ErrorEvent) => void;
  readonly onRetry?: (event: RetryEvent) => void;
  /** A token was refreshed. */
  readonly onRefresh?: (event: { readonly expiresAt: number | undefined; readonly rotated: boolean }) => void;
  /** A token was revoked. */
  readonly onRevoke?: (event: { readonly hint: string | undefined }) => void;
};

/** The names of all hooks. */
export const hookNames = [
  'onRequest',
  'onResponse',
  'onError',
  'onRetry',
  'onRefresh',
  'onRevoke',
] as const satisfies readonly (keyof ClientHooks)[];
