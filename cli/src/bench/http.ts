import { Agent, request } from 'node:http';
import type { Connection } from './load.ts';
import type { Target } from './target.ts';

interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** One kept connection, over which requests follow one another. */
export function openHttp(
  { address, port, authority }: Target,
  { method, path, headers }: HttpRequest,
  timeoutMs: number,
): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const options = { agent, host: address, port, method, path, headers: { host: authority, ...headers } };
  return {
    send: () =>
      new Promise((resolve, reject) => {
        const sent = request({ ...options, timeout: timeoutMs }, (response) => {
          response.on('error', reject);
          response.on('end', () => resolve(String(response.statusCode)));
          response.resume();
        });
        sent.on('timeout', () => sent.destroy(new Error('no response in time')));
        sent.on('error', reject);
        sent.end();
      }),
    close: () => agent.destroy(),
  };
}
