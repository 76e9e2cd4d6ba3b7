import { createConnection, type NetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** How long a server on this machine may take to answer one line before the attempt counts as failed. */
const answerTimeoutMs = 10_000;

/**
 * Sends one text over a fresh connection and answers the first chunk that comes back. Enough to see whether a server
 * with a line protocol is there; `tls` makes it a TLS connection.
 *
 * @throws Error when the connection fails, ends or stays silent for ten seconds.
 */
export function ask(text: string, target: NetConnectOpts, tls?: ConnectionOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tls === undefined ? createConnection(target) : connectTls({ ...target, ...tls });
    const settle = (finish: () => void) => {
      socket.destroy();
      finish();
    };
    socket.setTimeout(answerTimeoutMs, () => settle(() => reject(new Error('no answer within 10 s'))));
    socket.once('error', (error) => settle(() => reject(error)));
    socket.once('close', () => reject(new Error('the connection was closed without an answer')));
    socket.once('data', (chunk) => settle(() => resolve(chunk.toString('latin1'))));
    socket.write(text);
  });
}
