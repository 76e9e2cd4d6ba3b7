import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createFailureLog } from './failure-log.ts';
import type { Logger } from './logger.ts';

/** Where failed handshakes of a listener are reported. */
export interface HandshakeReport {
  readonly logger: Logger;
  /** Name of the listener in log lines, the same as in metrics. */
  readonly listener: string;
  /** Called once for each failed handshake. */
  readonly onFailure?: () => void;
}

/** Counts handshakes that fail, and logs them: equal failures once a second. */
export function reportHandshakes(server: NodeJS.EventEmitter, report: HandshakeReport): void {
  const { logger, listener, onFailure } = report;
  const logFailure = createFailureLog({ logger, message: 'TLS handshake failed', level: 'warn' });
  // A socket that was reset has forgotten its peer by the time of the error.
  const peers = new WeakMap<Socket, string | undefined>();
  server.on('connection', (socket: Socket) => peers.set(socket, socket.remoteAddress));
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    // Undocumented, hence optional; the socket itself counts no bytes before the handshake is done.
    const { _parent: transport } = socket as { _parent?: Socket };
    // Health probes of load balancers and kubelets connect and close without a byte.
    if (transport?.bytesRead === 0) return;
    onFailure?.();
    // Node says only "socket hang up" of a client whose certificate it refused.
    const { authorizationError: refusal } = socket;
    const certificate = refusal ? { certificateError: String(refusal) } : {};
    logFailure(error, { listener, peer: transport && peers.get(transport), ...certificate });
  });
}
