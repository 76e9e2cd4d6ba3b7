import { channel } from 'node:diagnostics_channel';
import type { ClientHooks } from '../hooks.ts';

/** The channels of `diagnosticsHooks`. Messages are the events of the hooks. */
export const diagnosticsChannels = {
  onRequest: 'tollgate.oauth2-client.request',
  onResponse: 'tollgate.oauth2-client.response',
  onError: 'tollgate.oauth2-client.error',
  onRetry: 'tollgate.oauth2-client.retry',
  onRefresh: 'tollgate.oauth2-client.refresh',
  onRevoke: 'tollgate.oauth2-client.revoke',
} as const satisfies Record<keyof ClientHooks, string>;

/**
 * Makes hooks for a Client that publish on `node:diagnostics_channel`, at no cost without
 * subscribers.
 */
export function diagnosticsHooks(): Required<ClientHooks> {
  return {
    onRequest: publisher(diagnosticsChannels.onRequest),
    onResponse: publisher(diagnosticsChannels.onResponse),
    onError: publisher(diagnosticsChannels.onError),
    onRetry: publisher(diagnosticsChannels.onRetry),
    onRefresh: publisher(diagnosticsChannels.onRefresh),
    onRevoke: publisher(diagnosticsChannels.onRevoke),
  };
}

function publisher(name: string): (event: object) => void {
  const target = channel(name);
  return (event) => {
    if (target.hasSubscribers) target.publish(event);
  };
}
