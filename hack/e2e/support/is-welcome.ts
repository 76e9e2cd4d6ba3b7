import { connect } from 'node:tls';
import type { Certificate } from '@tollgate/testkit/certificates';

/** An answer comes within milliseconds; a machine with other work is given more. */
const answerTimeoutMs = 20_000;

/**
 * Would a server on this port talk HTTP/2 to a client with this certificate, and does the server's own come from this
 * authority? A server that wants no such client says so after the client's half of the handshake, so what counts is the
 * first thing that it sends.
 */
export function isWelcome(port: number, client: Certificate, authority: Certificate): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({
      host: '127.0.0.1',
      servername: 'localhost',
      port,
      cert: client.cert,
      key: client.key,
      ca: authority.cert,
      ALPNProtocols: ['h2'],
    });
    const settle = (welcome: boolean) => {
      socket.destroy();
      resolve(welcome);
    };
    socket.setTimeout(answerTimeoutMs, () => settle(false));
    socket.once('data', () => settle(true));
    socket.once('error', () => settle(false));
    socket.once('close', () => settle(false));
  });
}
