// Starts the MCP server behind Envoy on this machine, with the auth server, the rate limit service
// and the xDS server that follows policy.yaml. Ctrl-C stops everything.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { temporaryFolder, withTemporaryFolder } from '@tollgate/testkit/folders';
import { serviceKey } from '@tollgate/testkit/service-key';
import { startHttpServer, startService } from '@tollgate/testkit/services';
import { choosePorts, preferredPorts } from '../../hack/demo/options.ts';
import { envoy, limiter, type Part, type PartContext, xds } from '../../hack/demo/parts.ts';
import { PartFailure, startPlatform, untilStopped } from '../../hack/demo/platform.ts';

/** Settings of the auth server, in addition to those of any server behind Envoy. */
const oauthServer = {
  SVC_OAUTH_SERVER_ENABLED: 'true',
  SVC_OAUTH_SERVER_ALLOW_CLIENT_ID_METADATA_DOCUMENTS: 'true',
  SVC_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
  SVC_PAGES_ENABLED: 'true',
  SVC_PAGES_NAME: 'The shop',
  // For a machine without mail: an account needs no confirmation.
  SVC_MAILER_AUTOCONFIRM: 'true',
};

const auth: Part = {
  name: 'the auth server',
  hint: 'Its last lines are above.',
  async start({ ports, nodePath, jwtSecret, signal }) {
    const issuer = `http://localhost:${ports.authHttp}`;
    const server = await withTemporaryFolder((folder) =>
      startService('auth', {
        ...{ nodePath, signal, readyUrl: `http://127.0.0.1:${ports.authHttp}/ready` },
        settings: {
          ...oauthServer,
          SVC_MODE: 'development',
          SVC_DEVELOPMENT_FOLDER: folder,
          PORT: String(ports.authHttp),
          LOG_LEVEL: 'warn',
          SVC_JWT_SECRET: jwtSecret,
          SVC_JWT_KEYS: makeKeys(jwtSecret),
          SVC_SECURITY_TRUSTED_PROXIES: 'loopback',
          SVC_JWT_ISSUER: issuer,
          SVC_API_EXTERNAL_URL: issuer,
          SVC_EXT_AUTHZ_GRPC_PORT: String(ports.authGrpc),
          SVC_EXT_AUTHZ_HTTP_PORT: '0',
          SVC_EXT_AUTHZ_POLICY_SERVER: `127.0.0.1:${ports.xdsGrpc}`,
          SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${ports.limiterGrpc}`,
          SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '5s',
        },
      }),
    );
    return { ...server, detail: issuer };
  },
};

/** Clients verify ID tokens with the first key. Tokens of administrators have the second one. */
function makeKeys(secret: string): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const k = Buffer.from(secret).toString('base64url');
  return JSON.stringify([
    { ...privateKey.export({ format: 'jwk' }), kid: 'ec', alg: 'ES256', key_ops: ['sign', 'verify'] },
    { kty: 'oct', k, kid: 'admin', alg: 'HS256', key_ops: ['verify'] },
  ]);
}

const tools: Part = {
  name: 'the MCP server',
  hint: 'Its last lines are above.',
  async start({ ports: { shop: port }, nodePath, signal }) {
    const program = resolve(import.meta.dirname, 'server.ts');
    const server = await startHttpServer([nodePath, program], {
      ...{ signal, settings: { PORT: String(port) }, readyUrl: `http://127.0.0.1:${port}/health` },
    });
    return { ...server, detail: `http://127.0.0.1:${port}, which only Envoy calls` };
  },
};

/** A copy of policy.yaml, with the port that Envoy has. */
async function writePolicy(path: string, { envoy: port }: PartContext['ports']): Promise<void> {
  const policy = await readFile(resolve(import.meta.dirname, 'policy.yaml'), 'utf8');
  await mkdir(path);
  await writeFile(join(path, 'policy.yaml'), policy.replaceAll(`:${preferredPorts.envoy}/`, `:${port}/`));
}

/** Creates the client of examples/oidc-client, and returns the command that runs it. */
async function createClient({ ports, jwtSecret }: PartContext, port: string): Promise<string> {
  const issuer = `http://localhost:${ports.authHttp}`;
  const response = await fetch(`${issuer}/admin/oauth/clients`, {
    method: 'POST',
    headers: { authorization: `Bearer ${serviceKey(jwtSecret)}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Example application',
      redirect_uris: [`http://localhost:${port}/callback`],
      post_logout_redirect_uris: [`http://localhost:${port}/`],
    }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`no client: ${response.status} ${text}`);
  const { client_id: id, client_secret: secret } = JSON.parse(text);
  return `ISSUER=${issuer} CLIENT_ID=${id} CLIENT_SECRET=${secret} node examples/oidc-client/app.ts`;
}

const write = (text: string): void => void process.stdout.write(text);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

/** The port of the web application. */
const { PORT: appPort = '3000' } = process.env;

const folder = temporaryFolder();
try {
  const ports = await choosePorts();
  const policies = { path: join(folder.path, 'policies') };
  await writePolicy(policies.path, ports);
  const context = {
    ...{ ports, policies, folder: folder.path, nodePath: process.execPath, signal: stop.signal },
    jwtSecret: randomBytes(32).toString('base64url'),
  };
  const platform = await startPlatform([xds, limiter, auth, tools, envoy], context, write);
  try {
    write(`\nSign in with nothing but the URL of the server, in another terminal:
  node examples/mcp/client.ts http://localhost:${ports.envoy}/mcp
Sign in at a web application, at http://localhost:${appPort}:
  ${await createClient(context, appPort)}
Change who may call it, and how often: ${policies.path}/policy.yaml\n\n`);
    await untilStopped(platform, stop.signal, write);
  } finally {
    await platform.stop();
  }
} catch (error) {
  if (!(error instanceof PartFailure)) throw error;
  write([error.message, ...error.lastLines, error.hint, ''].join('\n'));
  process.exitCode = 1;
} finally {
  folder.remove();
}
