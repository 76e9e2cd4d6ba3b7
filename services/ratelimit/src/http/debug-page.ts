import type { FastifyReply, FastifyRequest } from 'fastify';

/** Answers a request of the debug port. */
type DebugHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> | FastifyReply;

/** A page of the debug port; all that the index needs to know of it. */
export interface DebugPage {
  readonly path: string;
  /** What it shows, for the index. */
  readonly help: string;
  readonly get: DebugHandler;
  readonly post?: DebugHandler;
}

/** Answers with text for people; browsers must not take it for anything else, for it repeats what callers send. */
export function sendText(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('text/plain; charset=utf-8').header('x-content-type-options', 'nosniff').send(text);
}

/** Does the caller ask for JSON rather than for text? */
export function wantsJson(request: FastifyRequest): boolean {
  return request.headers.accept?.includes('application/json') ?? false;
}

/** Where the caller reached this server, for commands to paste. */
export function baseUrl(request: FastifyRequest): string {
  const { localPort = 80 } = request.socket;
  // Only what cannot break out of the quotes of a shell.
  const host = /^[\w.:[\]-]+$/.test(request.host) ? request.host : `localhost:${localPort}`;
  return `http://${host}`;
}

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
