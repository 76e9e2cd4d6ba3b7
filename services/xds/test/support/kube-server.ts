import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { KubeConfig } from '@kubernetes/client-node';
import { ApiClient } from '../../src/kube/client.ts';

/** One request as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Answers one request. */
export type Answer = (response: ServerResponse, request: SeenRequest) => void;

/** An API server that plays what a test has written down for it. */
export interface ScriptedServer {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** A client of it. */
  readonly api: ApiClient;
  stop(): Promise<void>;
}

/** Starts a server that asks `answer` for each request; its client has the options. */
export async function startScriptedServer(
  answer: Answer,
  options: ConstructorParameters<typeof ApiClient>[1] = {},
): Promise<ScriptedServer> {
  const requests: SeenRequest[] = [];
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    incoming.on('end', () => {
      const url = new URL(incoming.url ?? '', 'http://local');
      const { method = '', headers } = incoming;
      const request = { method, path: url.pathname, query: url.searchParams, headers, body };
      requests.push(request);
      answer(response, request);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  const url = `http://127.0.0.1:${address.port}`;
  const api = new ApiClient(configFor(url), options);
  return {
    url,
    requests,
    api,
    async stop() {
      api.close();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Answers each request with the next answer; the last one answers all further ones. */
export function inTurn(...answers: readonly Answer[]): Answer {
  let next = 0;
  return (response, request) => {
    const answer = answers[Math.min(next, answers.length - 1)];
    next += 1;
    answer?.(response, request);
  };
}

/** Answers with JSON. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
  };
}

/** Refuses as the API server does. */
export function refusal(code: number, reason: string, headers: Record<string, string> = {}): Answer {
  return json({ kind: 'Status', status: 'Failure', code, reason, message: `${reason} it is` }, code, headers);
}

/** Answers with a page of a list. */
export function page(items: readonly unknown[], resourceVersion: string, next = ''): Answer {
  return json({ kind: 'RateLimitConfigList', metadata: { resourceVersion, continue: next }, items });
}

/** Answers with lines and leaves the response open. */
export function watch(...events: readonly unknown[]): Answer {
  return (response) => {
    response.writeHead(200);
    response.flushHeaders();
    for (const event of events) response.write(`${JSON.stringify(event)}\n`);
  };
}

/** An object of a scripted server, without `apiVersion` and `kind`, as in lists of most kinds. */
export function item(name: string, resourceVersion: string, rest: Record<string, unknown> = {}) {
  return {
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion, generation: 1 },
    spec: { domain: name },
    ...rest,
  };
}

/** The configuration of a client that speaks plain HTTP to the loopback address. */
function configFor(server: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'test', server, skipTLSVerify: true },
    { name: 'test', token: 'open' },
  );
  return config;
}
