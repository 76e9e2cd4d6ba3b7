// The server of the SDK benchmark, a process of its own so that it shares no event loop with what is measured. Answers
// every token request with a new token and every other request with a small document; tells its port to its parent.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let issued = 0;
const resource = JSON.stringify({ id: 7, name: 'a resource of the usual size', tags: ['a', 'b', 'c'] });

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    const body =
      request.url === '/oauth/token'
        ? JSON.stringify({ access_token: `token-${issued++}`, token_type: 'Bearer', expires_in: 3600 })
        : resource;
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
    });
    response.end(body);
  });
});
// Longer than a round, so that no contestant pays for a connection that another one kept warm.
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => {
  // A listening TCP server has such an address.
  process.send?.((server.address() as AddressInfo).port);
});
process.once('disconnect', () => server.close().closeAllConnections());
