import type { FastifyReply, FastifyRequest } from 'fastify';

type DebugHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> | FastifyReply;

export interface DebugPage {
  readonly path: string;
  readonly help: string;
  readonly get: DebugHandler;
  readonly post?: DebugHandler;
}

/** `nosniff`, because the text repeats what callers send. */
export function sendText(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('text/plain; charset=utf-8').header('x-content-type-options', 'nosniff').send(text);
}

export function wantsJson(request: FastifyRequest): boolean {
  return request.headers.accept?.includes('application/json') ?? false;
}

/** The URL of this server as the caller reached it, for shell commands. */
export function getBaseUrl(request: FastifyRequest): string {
  const { localPort = 80 } = request.socket;
  // Only characters that are safe in shell quotes.
  const host = /^[\w.:[\]-]+$/.test(request.host) ? request.host : `localhost:${localPort}`;
  return `http://${host}`;
}

// Not all of 127.0.0.0/8: Istio's sidecar forwards remote calls from 127.0.0.6.
const loopbackAddresses = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Whether the caller is on this machine, or in this pod through `kubectl port-forward`. False for
 * calls through a proxy, and for web pages that resolve their own name to this address (DNS
 * rebinding).
 */
export function isLocalCaller({ socket, headers, hostname }: FastifyRequest): boolean {
  return (
    loopbackAddresses.has(socket.remoteAddress ?? '') &&
    loopbackHosts.has(hostname) &&
    headers['x-forwarded-for'] === undefined &&
    headers.forwarded === undefined
  );
}
