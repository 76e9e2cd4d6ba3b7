import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Part } from '../part.ts';

/** The application behind Envoy: answers 200 with the request as it arrived, as JSON. */
export const upstream: Part = {
  name: 'the application',
  hint: 'It is a few lines in hack/demo/parts/upstream.ts; the error says what this machine refused them.',
  async start({ ports }) {
    const server = createServer((request, response) => {
      const { method, url: path, headers } = request;
      request.resume();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`${JSON.stringify({ method, path, headers }, undefined, 2)}\n`);
    });
    server.listen(ports.upstream, '127.0.0.1');
    await once(server, 'listening');
    return {
      detail: `http://127.0.0.1:${ports.upstream}`,
      isRunning: () => server.listening,
      logs: () => '',
      async stop() {
        if (!server.listening) return;
        const closed = once(server, 'close');
        server.close();
        server.closeAllConnections();
        await closed;
      },
    };
  },
};
