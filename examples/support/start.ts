// Starts the application of an example behind Envoy on this machine, with the auth server, the rate
// limit service and the xDS server that follows its policy.
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startHttpServer } from '@tollgate/testkit/services';
import { type Part, PartFailure, Platform } from '../../cli/src/up/platform.ts';
import { choosePorts, type Ports, preferredPorts } from '../../hack/demo/options.ts';
import { createParts, StartOutput } from '../../hack/demo/parts.ts';

/** Options of a started example. */
export interface ExampleContext {
  readonly ports: Ports;
  /** Signs every token. */
  readonly jwtSecret: string;
}

interface Example {
  /** Has policy.yaml, and server.ts, which responds at `/health`. */
  readonly folder: string;
  /** Completes "starting …". */
  readonly application: string;
  /** Settings of the auth server, in addition to those of any server behind Envoy. */
  readonly settings: (context: ExampleContext) => Readonly<Record<string, string>>;
  /** Returns the text that says what to open and to try. The policy is always named after it. */
  readonly describe: (context: ExampleContext) => Promise<string> | string;
}

/** The external URL of the auth server. */
export function authUrl({ ports }: ExampleContext): string {
  return `http://localhost:${ports.authHttp}`;
}

/** Resolves after Ctrl-C, with everything stopped. */
export async function startExample(example: Example): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  const folder = temporaryFolder();
  try {
    const ports = await choosePorts();
    const policiesFolder = join(folder.path, 'policies');
    await mkdir(policiesFolder);
    const policyFile = join(policiesFolder, 'policy.yaml');
    await writeFile(policyFile, await readPolicy(example, ports));
    const context = { ports, jwtSecret: randomBytes(32).toString('base64url') };
    const options = {
      ...{ ...context, policiesFolder, folder: folder.path },
      limiterToken: randomBytes(32).toString('base64url'),
      auth: { externalUrl: authUrl(context), settings: authSettings(example, context) },
    };
    const output = new StartOutput(write);
    const parts = await createParts(options, applicationPart(example, ports.shop));
    const platform = await Platform.start(parts, stop.signal, output);
    try {
      write(`\n${await example.describe(context)}\n`);
      write(`Change who may call it, and how often: ${policyFile}\n\n`);
      output.showLog();
      await platform.untilStopped(stop.signal);
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

function authSettings({ settings }: Example, context: ExampleContext): Record<string, string> {
  return {
    LOG_LEVEL: 'warn',
    SVC_PAGES_ENABLED: 'true',
    // For a machine without mail: an account needs no confirmation.
    SVC_MAILER_AUTOCONFIRM: 'true',
    ...settings(context),
  };
}

function applicationPart({ folder, application: name }: Example, port: number): Part {
  return {
    ...{ name, label: 'app', hint: 'Its last lines are above.' },
    async start(options) {
      const url = `http://127.0.0.1:${port}`;
      const command = [process.execPath, join(folder, 'server.ts')];
      const settings = { PORT: String(port) };
      const server = await startHttpServer(command, { ...options, settings, readyUrl: `${url}/health` });
      return { ...server, detail: `${url}, which only Envoy calls` };
    },
  };
}
