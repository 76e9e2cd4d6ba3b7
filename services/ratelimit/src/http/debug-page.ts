import type { HttpReply, HttpRequest } from './router.ts';

type DebugHandler = (request: HttpRequest) => Promise<HttpReply> | HttpReply;

export interface DebugPage {
  readonly path: string;
  readonly help: string;
  readonly get: DebugHandler;
  readonly post?: DebugHandler;
}

export function wantsJson({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return headers.accept?.includes('application/json') ?? false;
}

/** The URL of this server as the caller reached it, for shell commands. */
export function getBaseUrl({ headers, socket }: HttpRequest): string {
  const { localPort = 80 } = socket;
  const { host = '' } = headers;
  // Only characters that are safe in shell quotes.
  return `http://${/^[\w.:[\]-]+$/.test(host) ? host : `localhost:${localPort}`}`;
}

// Not all of 127.0.0.0/8: Istio's sidecar forwards remote calls from 127.0.0.6.
const loopbackAddresses = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Whether the caller is on this machine, or in this pod through `kubectl port-forward`. False for
 * calls through a proxy, and for web pages that resolve their own name to this address (DNS
 * rebinding).
 */
export function isLocalCaller({ socket, headers }: HttpRequest): boolean {
  return (
    loopbackAddresses.has(socket.remoteAddress ?? '') &&
    loopbackHosts.has(headers.host?.replace(/:\d+$/, '') ?? '') &&
    headers['x-forwarded-for'] === undefined &&
    headers.forwarded === undefined
  );
}
