// Starts the MCP server behind Envoy on this machine, with the auth server, the rate limit service
// and the xDS server that follows policy.yaml. Ctrl-C stops everything.
import { generateKeyPairSync } from 'node:crypto';
import { serviceKey } from '@tollgate/kit/service-key';
import { authUrl, type ExampleContext, startExample } from '../support/start.ts';

/** The port of the web application. */
const { PORT: appPort = '3000' } = process.env;

await startExample({
  folder: import.meta.dirname,
  application: 'the MCP server',
  settings: (context) => ({
    SVC_OAUTH_SERVER_ENABLED: 'true',
    SVC_OAUTH_SERVER_ALLOW_CLIENT_ID_METADATA_DOCUMENTS: 'true',
    SVC_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
    SVC_PAGES_NAME: 'The shop',
    SVC_JWT_ISSUER: authUrl(context),
    SVC_JWT_KEYS: makeKeys(context.jwtSecret),
  }),
  describe: async (context) => `Sign in with nothing but the URL of the server, in another terminal:
  node examples/mcp/client.ts http://localhost:${context.ports.envoy}/mcp
Sign in at a web application, at http://localhost:${appPort}:
  ${await createClient(context)}`,
});

/** Clients verify ID tokens with the first key. Tokens of administrators have the second one. */
function makeKeys(secret: string): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const k = Buffer.from(secret).toString('base64url');
  return JSON.stringify([
    { ...privateKey.export({ format: 'jwk' }), kid: 'ec', alg: 'ES256', key_ops: ['sign', 'verify'] },
    { kty: 'oct', k, kid: 'admin', alg: 'HS256', key_ops: ['verify'] },
  ]);
}

/** Creates the client of examples/oidc-client, and returns the command that runs it. */
async function createClient(context: ExampleContext): Promise<string> {
  const issuer = authUrl(context);
  const authorization = `Bearer ${serviceKey(context.jwtSecret)}`;
  const response = await fetch(`${issuer}/admin/oauth/clients`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Example application',
      redirect_uris: [`http://localhost:${appPort}/callback`],
      post_logout_redirect_uris: [`http://localhost:${appPort}/`],
    }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`no client: ${response.status} ${text}`);
  const { client_id: id, client_secret: secret } = JSON.parse(text);
  return `ISSUER=${issuer} CLIENT_ID=${id} CLIENT_SECRET=${secret} node examples/oidc-client/app.ts`;
}
