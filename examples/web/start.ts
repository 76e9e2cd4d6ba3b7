// Starts the web application behind Envoy on this machine, with the auth server, the rate limit
// service and the xDS server that follows policy.yaml. Ctrl-C stops everything.
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { temporaryFolder, withTemporaryFolder } from '@tollgate/testkit/folders';
import { startHttpServer, startService } from '@tollgate/testkit/services';
import { choosePorts } from '../../hack/demo/options.ts';
import { envoy, limiter, type Part, xds } from '../../hack/demo/parts.ts';
import { PartFailure, startPlatform, untilStopped } from '../../hack/demo/platform.ts';

const auth: Part = {
  name: 'the auth server',
  hint: 'Its last lines are above.',
  async start({ ports, nodePath, jwtSecret, signal }) {
    const url = `http://localhost:${ports.authHttp}`;
    const server = await withTemporaryFolder((folder) =>
      startService('auth', {
        ...{ nodePath, signal, readyUrl: `http://127.0.0.1:${ports.authHttp}/ready` },
        settings: {
          SVC_PAGES_ENABLED: 'true',
          SVC_PAGES_NAME: 'Notes',
          // For a machine without mail: an account needs no confirmation.
          SVC_MAILER_AUTOCONFIRM: 'true',
          SVC_MODE: 'development',
          SVC_DEVELOPMENT_FOLDER: folder,
          PORT: String(ports.authHttp),
          LOG_LEVEL: 'warn',
          SVC_JWT_SECRET: jwtSecret,
          SVC_SECURITY_TRUSTED_PROXIES: 'loopback',
          SVC_API_EXTERNAL_URL: url,
          SVC_EXT_AUTHZ_GRPC_PORT: String(ports.authGrpc),
          SVC_EXT_AUTHZ_HTTP_PORT: '0',
          SVC_EXT_AUTHZ_POLICY_SERVER: `127.0.0.1:${ports.xdsGrpc}`,
          SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${ports.limiterGrpc}`,
          SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '5s',
        },
      }),
    );
    return { ...server, detail: url };
  },
};

const application: Part = {
  name: 'the application',
  hint: 'Its last lines are above.',
  async start({ ports: { shop: port }, nodePath, signal }) {
    const program = resolve(import.meta.dirname, 'server.ts');
    const server = await startHttpServer([nodePath, program], {
      ...{ signal, settings: { PORT: String(port) }, readyUrl: `http://127.0.0.1:${port}/health` },
    });
    return { ...server, detail: `http://127.0.0.1:${port}, which only Envoy calls` };
  },
};

const write = (text: string): void => void process.stdout.write(text);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const folder = temporaryFolder();
try {
  const ports = await choosePorts();
  const policies = { path: join(folder.path, 'policies') };
  await mkdir(policies.path);
  await copyFile(resolve(import.meta.dirname, 'policy.yaml'), join(policies.path, 'policy.yaml'));
  const context = {
    ...{ ports, policies, folder: folder.path, nodePath: process.execPath, signal: stop.signal },
    jwtSecret: randomBytes(32).toString('base64url'),
  };
  const platform = await startPlatform([xds, limiter, auth, application, envoy], context, write);
  try {
    write(`\nOpen http://localhost:${ports.envoy}/ in a browser, and create an account.
Change who may open it, and how often: ${policies.path}/policy.yaml\n\n`);
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
