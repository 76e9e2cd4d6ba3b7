import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { openHttpConnection, requestBytes } from '../http-connection.ts';

async function startServer(t: Test): Promise<number> {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    if (request.url === '/close') return void response.destroy();
    const answer = `${request.method} ${request.url} ${request.headers.authorization ?? '-'} ${body}`;
    response.writeHead(request.url === '/no' ? 404 : 200, { 'content-length': Buffer.byteLength(answer) });
    // In two parts, so that the answer does not come in one piece.
    response.write(answer.slice(0, 3));
    setImmediate(() => response.end(answer.slice(3)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port; // a listening TCP server has such an address
}

t.test('one connection asks one thing after the other', async (t) => {
  const connection = await openHttpConnection(await startServer(t));
  t.teardown(connection.close);
  t.same(await connection.ask(requestBytes('GET', '/a', { token: 'x' })), {
    status: 200,
    body: 'GET /a Bearer x ',
  });
  t.same(await connection.ask(requestBytes('POST', '/b', { body: { é: 1 } })), {
    status: 200,
    body: 'POST /b - {"é":1}',
  });
  t.match(await connection.ask(requestBytes('GET', '/no')), { status: 404 });
  await t.rejects(connection.ask(requestBytes('GET', '/close')), /closed the connection|ECONNRESET/);
});
