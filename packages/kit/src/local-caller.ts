import type { IncomingMessage } from 'node:http';

// The rest of 127.0.0.0/8 is not trusted: Istio's sidecar forwards remote calls from 127.0.0.6.
const loopbackAddresses = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Whether the caller is on this machine, or in this pod through `kubectl port-forward`. False for
 * calls through a proxy, and for web pages that resolve their own name to this address (DNS
 * rebinding).
 */
export function isLocalCaller({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
  return (
    loopbackAddresses.has(socket.remoteAddress ?? '') &&
    loopbackHosts.has(headers.host?.replace(/:\d+$/, '') ?? '') &&
    headers['x-forwarded-for'] === undefined &&
    headers.forwarded === undefined
  );
}
