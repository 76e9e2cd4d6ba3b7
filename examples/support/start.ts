// Starts the application of an example behind Envoy on this machine, with the auth server, the rate
// limit service and the xDS server that follows its policy.
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startHttpServer } from '@tollgate/testkit/services';
import { choosePorts, type Ports, preferredPorts } from '../../hack/demo/options.ts';
import { envoy, limiter, type Part, type PartContext, startAuth, xds } from '../../hack/demo/parts.ts';
import { PartFailure, startPlatform, untilStopped } from '../../hack/demo/platform.ts';

interface Example {
  /** Has policy.yaml, and server.ts, which responds at `/health`. */
  readonly folder: string;
  /** Completes "starting …". */
  readonly application: string;
  /** Settings of the auth server, in addition to those of any server behind Envoy. */
  readonly settings: (context: PartContext) => Readonly<Record<string, string>>;
  /** Returns the text that says what to open and to try. The policy is always named after it. */
  readonly describe: (context: PartContext) => Promise<string> | string;
}

/** The external URL of the auth server. */
export function authUrl({ ports }: PartContext): string {
  return `http://localhost:${ports.authHttp}`;
}

/** Resolves after Ctrl-C, with everything stopped. */
export async function startExample(example: Example): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  const folder = temporaryFolder();
  try {
    const ports = await choosePorts();
    const policies = { path: join(folder.path, 'policies') };
    await mkdir(policies.path);
    const policyFile = join(policies.path, 'policy.yaml');
    await writeFile(policyFile, await readPolicy(example, ports));
    const context = {
      ...{ ports, policies, folder: folder.path, nodePath: process.execPath, signal: stop.signal },
      jwtSecret: randomBytes(32).toString('base64url'),
    };
    const parts = [xds, limiter, authPart(example), applicationPart(example), envoy];
    const platform = await startPlatform(parts, context, write);
    try {
      write(`\n${await example.describe(context)}\n`);
      write(`Change who may call it, and how often: ${policyFile}\n\n`);
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
}

function write(text: string): void {
  process.stdout.write(text);
}

/** The policy with the port that Envoy has. */
async function readPolicy({ folder }: Example, { envoy: port }: Ports): Promise<string> {
  const policy = await readFile(join(folder, 'policy.yaml'), 'utf8');
  return policy.replaceAll(`:${preferredPorts.envoy}/`, `:${port}/`);
}

const hint = 'Its last lines are above.';

function authPart({ settings }: Example): Part {
  return {
    ...{ name: 'the auth server', hint },
    async start(context) {
      const server = await startAuth(context, {
        LOG_LEVEL: 'warn',
        SVC_API_EXTERNAL_URL: authUrl(context),
        SVC_PAGES_ENABLED: 'true',
        // For a machine without mail: an account needs no confirmation.
        SVC_MAILER_AUTOCONFIRM: 'true',
        ...settings(context),
      });
      return { ...server, detail: authUrl(context) };
    },
  };
}

function applicationPart({ folder, application: name }: Example): Part {
  return {
    ...{ name, hint },
    async start({ ports: { shop: port }, nodePath, signal }) {
      const url = `http://127.0.0.1:${port}`;
      const command = [nodePath, join(folder, 'server.ts')];
      const options = { signal, settings: { PORT: String(port) }, readyUrl: `${url}/health` };
      const server = await startHttpServer(command, options);
      return { ...server, detail: `${url}, which only Envoy calls` };
    },
  };
}
