// The application behind Envoy, without a line about passwords, tokens of users or limits: who asks
// is in headers that Envoy has put there. It calls a route that only programs may call, with a
// token of its own that the SDK keeps fresh.
//
//   PORT          where it listens, on the loopback address
//   GATEWAY_URL   Envoy, in front of this very application and of the auth server
//   SHOP_EMAIL    its own account
//   SHOP_PASSWORD
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { Client } from '@tollgate/oauth2-client';
import { TokenManager } from '@tollgate/oauth2-client/token-manager';

const { PORT, GATEWAY_URL = '', SHOP_EMAIL = '', SHOP_PASSWORD = '' } = process.env;

const client = new Client({
  clientId: 'shop',
  clientAuth: 'none',
  site: GATEWAY_URL,
  tokenEndpoint: '/auth/token',
});
const tokens = new TokenManager({
  client,
  acquire: () => client.password.getToken(SHOP_EMAIL, SHOP_PASSWORD),
});

/** Pages by path; all others show the identity and the path. */
const pages: Readonly<Record<string, (headers: IncomingHttpHeaders) => Promise<object> | object>> = {
  '/catalogue': async (headers) => {
    const answer = await tokens.fetch(`${GATEWAY_URL}/stock`);
    if (!answer.ok) throw new Error(`/stock answered ${answer.status}: ${await answer.text()}`);
    return { caller: callerIn(headers), articles: ['tea', 'coffee'], stock: await answer.json() };
  },
  '/stock': (headers) => ({ caller: callerIn(headers), tea: 12, coffee: 7 }),
};

// Longer than Envoy keeps a connection on which nothing happens: it would send a request on one
// that is just being closed.
const keepAliveTimeout = 3_660_000;

const server = createServer({ keepAliveTimeout }, (request, response) => {
  request.resume();
  const { method, url: path = '', headers } = request;
  const { authorization: _secret, ...shown } = headers;
  const page = pages[path] ?? (() => ({ caller: callerIn(headers), method, path, headers: shown }));
  void answer(response, () => page(headers));
});
server.listen(Number(PORT), '127.0.0.1');

async function answer(response: ServerResponse, page: () => Promise<object> | object): Promise<void> {
  try {
    send(response, 200, await page());
  } catch (error) {
    process.stderr.write(`${error}\n`);
    send(response, 502, { error: 'the shop could not read its stock; its log says why' });
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify(body, undefined, 2)}\n`);
}

/** Envoy removes these headers from requests of clients. */
function callerIn(headers: IncomingHttpHeaders): object {
  return {
    userId: headers['x-auth-user-id'],
    role: headers['x-auth-role'],
    plan: headers['x-auth-plan'],
  };
}
