// The official MCP client reaches the official MCP server behind Envoy with nothing but its URL.
import { createServer } from 'node:http';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { proofAlgorithms } from '../../src/dpop/proof.ts';
import { adminToken } from '../helpers/admin.ts';
import { signUp } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { Browser } from '../helpers/browser.ts';
import { documentClients, startDocumentServer } from '../helpers/client-documents.ts';
import { createOAuthProvider } from '../helpers/mcp-client.ts';
import { redirectParameter } from '../helpers/oauth-clients.ts';
import { startPlatform } from '../helpers/policy-platform.ts';

const apiUrl = 'http://localhost:9999';
const callback = 'http://localhost:1/callback';
const ada = { identifier: 'ada@example.com', password: 'correct horse' };
const requestsOfClient = 20;

const policy = (url: string): string => {
  const resource = `resource: { url: "${url}", name: Tools of the shop, scopes: [email, profile] }`;
  return `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: tools, namespace: shop }
spec:
  hosts: [127.0.0.1]
  access: { scopes: [email], ${resource} }
  rules:
    - { matches: [{ path: { value: /mcp/profile } }], access: { scopes: [profile], ${resource} } }
  limits:
    - { name: per-client, by: [User, Client], requests: ${requestsOfClient}, per: Year }
`;
};

/** An MCP server with one tool. */
async function startMcpServer(t: Test): Promise<number> {
  const server = createServer(async (request, response) => {
    const mcp = new McpServer({ name: 'tools', version: '1.0.0' });
    mcp.registerTool('greet', { description: 'Greets the caller' }, () => ({
      content: [{ type: 'text', text: `Hello ${request.headers['x-auth-user-id']}` }],
    }));
    const transport = new StreamableHTTPServerTransport({});
    response.once('close', () => void mcp.close());
    await mcp.connect(transport as Parameters<McpServer['connect']>[0]); // its optional members differ
    await transport.handleRequest(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function startProtected(t: Test) {
  const { folder, server } = await startPlatform(t, policy('https://not-yet.example'), {
    ...documentClients,
    OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
    PAGES_ENABLED: 'true',
  });
  const envoy = await startAuthzEnvoy(t, {
    ...{ variant: 'grpc', port: server.extAuthz.grpc, upstreamPort: await startMcpServer(t) },
  });
  const url = `${envoy.url}/mcp`;
  folder.write('policies.yaml', policy(url));
  await awaitUntil(async () => (await fetch(metadataUrl(url))).status === 200, { what: 'the policy' });
  return { server, url };
}

function metadataUrl(url: string): string {
  return url.replace('/mcp', '/.well-known/oauth-protected-resource/mcp');
}

const { server, url } = await startProtected(t);

t.test('a client that knows the URL only gets access for its resource', async (t) => {
  const { userId, accessToken } = await signUp(server);
  /** The name of the auth server is resolved to the test server. */
  const resolve: typeof fetch = (input, init) => fetch(String(input).replace(apiUrl, server.url), init);
  const documents = await startDocumentServer(t);
  const connect = async (provider: OAuthClientProvider) => {
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      authProvider: provider,
      fetch: resolve,
    });
    const client = new Client({ name: 'assistant', version: '1.0.0' });
    t.teardown(() => client.close());
    return { transport, client, connected: client.connect(transport as Parameters<Client['connect']>[0]) };
  };
  const browser = new Browser({ [apiUrl]: server.url });
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  /** Signs the user in, and returns a client that calls tools. */
  const signIn = async (provider: ReturnType<typeof createOAuthProvider>, publisher: string) => {
    const first = await connect(provider);
    await t.rejects(first.connected, { name: 'Error', message: 'Unauthorized' });
    const authorization = provider.authorizationUrl();
    t.equal(authorization.searchParams.get('resource'), url);
    t.equal(authorization.searchParams.get('scope'), 'email', 'the scopes of the challenge');
    const page = (await browser.open(authorization.href)).headers.get('location') ?? '';
    const shown = await (await browser.open(page)).text();
    for (const part of ['assistant', 'You return to localhost', publisher]) t.match(shown, part);
    const approved = await browser.submit(page, { action: 'approve' }, { target: 'consent' });
    await first.transport.finishAuth(redirectParameter(approved.headers.get('location'), 'code'));
    const second = await connect(provider);
    await second.connected;
    const result = await second.client.callTool({ name: 'greet' });
    t.match(result, { content: [{ text: `Hello ${userId}` }] });
    return second.client;
  };
  const documentUrl = documents.publish('/client.json', {
    client_name: 'assistant',
    redirect_uris: [callback],
  });
  const published = createOAuthProvider(callback, documentUrl);
  await signIn(published, `identified by ${new URL(documents.base).host}`);
  t.match(await published.clientInformation(), { client_id: documentUrl });
  const provider = createOAuthProvider(callback);
  const client = await signIn(provider, 'on this device');
  const registered = String((await provider.clientInformation())?.client_id);
  const shown = await server.call('GET', `/admin/oauth/clients/${registered}`, { token: adminToken() });
  t.match(shown.body, { registration_type: 'dynamic', client_name: 'assistant' }, 'it has registered');

  const call = (token: string, path = ''): Promise<Response> =>
    fetch(`${url}${path}`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  const wrongAudience = await call(accessToken);
  t.equal(wrongAudience.status, 401);
  t.match(challengeOf(wrongAudience), `error="invalid_token"`);
  t.match(challengeOf(wrongAudience), `resource_metadata="${metadataUrl(url)}", scope="email"`);

  const token = provider.tokens()?.access_token ?? '';
  const missingScope = await call(token, '/profile');
  t.equal(missingScope.status, 403);
  t.match(challengeOf(missingScope), 'error="insufficient_scope"');
  t.match(challengeOf(missingScope), 'scope="profile"');
  t.match(challengeOf(missingScope), `resource_metadata="${metadataUrl(url)}"`);

  const statuses = new Set<number>();
  for (let sent = 0; sent < requestsOfClient; sent++) statuses.add((await call(token)).status);
  t.ok(statuses.has(429), 'the limit of user and client');
  await t.rejects(client.callTool({ name: 'greet' }), { code: 429 });
});

t.test('the metadata of the resource is public, and its path is not open otherwise', async (t) => {
  const shown = await fetch(metadataUrl(url));
  t.equal(shown.headers.get('content-type'), 'application/json');
  t.equal(shown.headers.get('access-control-allow-origin'), '*');
  t.match(shown.headers.get('cache-control'), /^public, max-age=/);
  t.same(await shown.json(), {
    resource: url,
    authorization_servers: [apiUrl],
    scopes_supported: ['email', 'profile'],
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: [...proofAlgorithms],
    resource_name: 'Tools of the shop',
  });
  const head = await fetch(metadataUrl(url), { method: 'HEAD' });
  t.equal(head.status, 200);
  const preflight = await fetch(metadataUrl(url), { method: 'OPTIONS' });
  t.equal(preflight.status, 204);
  t.equal(preflight.headers.get('access-control-allow-headers'), '*');
  t.equal((await fetch(metadataUrl(url), { method: 'POST' })).status, 401);
  for (const other of ['/other', '', '/mcp/']) {
    const answer = await fetch(metadataUrl(url).replace(/\/mcp$/, other));
    t.equal(answer.status, 401, `no resource at '${other}'`);
  }
});

function challengeOf(response: Response): string {
  return response.headers.get('www-authenticate') ?? '';
}
