// An MCP client of the official SDK. All it knows is the URL of the server.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const url = new URL(process.argv[2] ?? 'http://localhost:10000/mcp');
const callbacks = createServer().listen(0, '127.0.0.1');
await once(callbacks, 'listening');
const { port } = callbacks.address() as AddressInfo; // it listens on TCP
const redirectUrl = `http://127.0.0.1:${port}/callback`;
const state = randomUUID();

/** Keeps what the client learns in memory. The browser opens the authorization URL. */
function createProvider(): OAuthClientProvider {
  const kept: {
    client?: Parameters<NonNullable<OAuthClientProvider['saveClientInformation']>>[0];
    tokens?: Parameters<OAuthClientProvider['saveTokens']>[0];
    verifier?: string;
  } = {};
  return {
    redirectUrl,
    clientMetadata: {
      client_name: 'Example assistant',
      redirect_uris: [redirectUrl],
      token_endpoint_auth_method: 'none',
    },
    state: () => state,
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void Object.assign(kept, { client }),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void Object.assign(kept, { tokens }),
    codeVerifier: () => kept.verifier ?? '',
    saveCodeVerifier: (verifier) => void Object.assign(kept, { verifier }),
    redirectToAuthorization: ({ href }) => console.log(`Open this page, and sign in or sign up:\n${href}\n`),
  };
}

/** The code that the browser brings back. */
async function receiveCode(): Promise<string> {
  for (;;) {
    const [request, response] = await once(callbacks, 'request');
    const { searchParams } = new URL(request.url, redirectUrl);
    const code = searchParams.get('code');
    if (searchParams.get('state') !== state) response.writeHead(404).end();
    else {
      response.end(code === null ? 'There is no access.' : 'You can close this window.');
      if (code === null) throw new Error(`no access: ${searchParams.get('error_description')}`);
      return code;
    }
  }
}

const provider = createProvider();
const transport = () => new StreamableHTTPClientTransport(url, { authProvider: provider });
type Transport = Parameters<Client['connect']>[0]; // optional members of the SDK

const client = new Client({ name: 'example', version: '1.0.0' });
const first = transport();
try {
  await client.connect(first as Transport);
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  await first.finishAuth(await receiveCode());
  await client.connect(transport() as Transport);
}
const { content } = await client.callTool({ name: 'orders' });
console.log('The tool says:', JSON.stringify(content));
await client.close();
callbacks.closeAllConnections();
callbacks.close();
