// A web application that signs its users in: authorization code with PKCE; state, nonce, issuer and
// ID token are checked.
//   ISSUER=https://as.example CLIENT_ID=… CLIENT_SECRET=… PORT=3000 node sign-in.ts
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { OAuthClientError } from '@tollgate/oauth2-client';
import { discoverClient } from '@tollgate/oauth2-client/discovery';

const { ISSUER = '', CLIENT_ID = '', CLIENT_SECRET = '', PORT = '3000' } = process.env;

const client = await discoverClient(ISSUER, { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET });
type Transaction = Awaited<ReturnType<typeof client.authCode.startAuthorization>>['transaction'];
/**
 * State of a browser until it comes back, by the value of its cookie. Use your sessions
 * instead.
 */
const transactions = new Map<string, Transaction>();

async function signIn(_request: IncomingMessage, response: ServerResponse, origin: string) {
  const { url, transaction } = await client.authCode.startAuthorization({
    redirect_uri: `${origin}/callback`,
    scope: 'openid',
  });
  const session = randomUUID();
  transactions.set(session, transaction);
  const cookie = `session=${session}; HttpOnly; SameSite=Lax; Path=/`;
  response.writeHead(302, { location: String(url), 'set-cookie': cookie }).end();
}

async function callback(request: IncomingMessage, response: ServerResponse, origin: string) {
  const session = /session=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? '';
  const transaction = transactions.get(session);
  // One callback for one sign-in, whatever comes of it.
  transactions.delete(session);
  if (transaction === undefined) return response.writeHead(400).end('sign in first\n');
  const token = await client.authCode.completeAuthorization(new URL(request.url ?? '/', origin), transaction);
  return response.end(`signed in as ${token.idTokenClaims?.sub}\n`);
}

const server = createServer(async (request, response) => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await (request.url?.startsWith('/callback') ? callback : signIn)(request, response, origin);
  } catch (error) {
    const reason = error instanceof OAuthClientError ? error.kind : 'unknown';
    response.writeHead(400).end(`not signed in: ${reason}\n`);
  }
});
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
});
