import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A TCP port of the loopback address that was free a moment ago. Only for programs that cannot be given port 0;
 * somebody else may take it before they do, so callers start again on a collision.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return address.port;
}
