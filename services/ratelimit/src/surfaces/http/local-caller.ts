import type { FastifyRequest } from 'fastify';

// Not the whole of 127.0.0.0/8: Istio's sidecar hands on calls from elsewhere as 127.0.0.6.
const loopbackAddresses = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Is the caller on this machine, or in this pod by way of `kubectl port-forward`? Not when a proxy hands the call on, nor
 * when a page in a browser there was given a name of its own for this address.
 */
export function isLocalCaller({ socket, headers, hostname }: FastifyRequest): boolean {
  return (
    loopbackAddresses.has(socket.remoteAddress ?? '') &&
    loopbackHosts.has(hostname) &&
    headers['x-forwarded-for'] === undefined &&
    headers.forwarded === undefined
  );
}
