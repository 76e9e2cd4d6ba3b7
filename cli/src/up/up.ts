import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { watchFiles } from '@tollgate/kit/file-watch';
import { CommandFailure, exitCodes } from '../failure.ts';
import type { Terminal } from '../output/terminal.ts';
import { writeEnvironment } from './environment.ts';
import { bootstrapFile } from './envoy-config.ts';
import { findEnvoy } from './envoy-program.ts';
import { readUpFile, type UpFile } from './file.ts';
import { Log } from './log.ts';
import {
  authPart,
  consolePart,
  envoyPart,
  limiterPart,
  newAdministrator,
  type ServiceOptions,
  signInSettings,
  xdsPart,
} from './parts.ts';
import { type Part, PartFailure, Platform } from './platform.ts';
import { authPath } from './policy.ts';
import { findTakenPorts, settingOf } from './ports.ts';
import { type Folders, reload, writeState } from './reload.ts';
import { printSummary } from './summary.ts';

interface UpOptions {
  readonly path: string;
  /** `--envoy`. */
  readonly envoyPath?: string | undefined;
  /** PATH. */
  readonly searchPath: string;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

const example = `upstream: http://127.0.0.1:3000
routes:
  - { path: /public, access: Public }
  - { path: /admin, access: { roles: [admin] } }
limits:
  - { name: per-user, by: [User], requests: 60, per: Minute, plans: { pro: { requests: 600 } } }
`;

/** A valid file. @throws CommandFailure with everything that is wrong. */
export async function loadUpFile(path: string): Promise<UpFile> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const hint = error.code === 'ENOENT' ? `. Create it, for example with\n\n${example}` : '';
    throw new CommandFailure(`${path} cannot be read: ${error.message}${hint}`);
  });
  const read = readUpFile(text, path);
  if (!read.ok) throw new CommandFailure(read.problems.join('\n'));
  return read.file;
}

/**
 * Runs Envoy and all services until the signal aborts. Nothing is left running and no file behind,
 * whatever happens.
 *
 * @throws CommandFailure when something does not start, or ends by itself.
 */
export async function runUp(options: UpOptions): Promise<void> {
  const { path, signal, terminal } = options;
  const file = await loadUpFile(path);
  await checkPorts(file, path);
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-up-'));
  const log = new Log(terminal);
  try {
    await runParts(file, { ...options, folder, log });
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof PartFailure)) throw error;
    const { message, lastLines, hint } = error;
    throw new CommandFailure(
      [message, ...lastLines.map((line) => `  ${line}`), hint].join('\n'),
      exitCodes.failed,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
    if (signal.aborted) log.write('up', 'stopped');
  }
}

async function checkPorts({ ports }: UpFile, path: string): Promise<void> {
  const taken = await findTakenPorts(ports);
  if (taken.length === 0) return;
  const lines = taken.map(
    (name) => `port ${ports[name]} is in use: stop what listens there, or set ${settingOf(name)} in ${path}`,
  );
  throw new CommandFailure(lines.join('\n'), exitCodes.failed);
}

interface RunOptions extends UpOptions {
  readonly folder: string;
  readonly log: Log;
}

async function runParts(file: UpFile, options: RunOptions): Promise<void> {
  const { path, folder, log, signal, terminal } = options;
  const folders: Folders = { policies: join(folder, 'policies'), envoy: join(folder, 'envoy') };
  const program = findEnvoy({ ...options, path: options.envoyPath, configFolder: folders.envoy });
  for (const name of Object.values(folders)) await mkdir(name);
  await writeState(file, folders);
  const services = createServiceOptions(file, folders);
  const administrator = newAdministrator();
  const envoy = envoyPart({
    ...{ ports: file.ports, program, configFile: bootstrapFile(folders.envoy) },
    hint: 'Its last lines are above. --envoy PATH runs another Envoy.',
  });
  const parts = [
    xdsPart(services),
    limiterPart(services),
    authPart(services),
    envoy,
    consolePart(services, administrator),
  ];
  const ready = new Set<Part>();
  const platform = await Platform.start(parts, signal, {
    onReady(part, detail, seconds) {
      ready.add(part);
      log.write('up', `${part.name} is ready after ${seconds.toFixed(1)} s: ${detail}`);
    },
    // Earlier lines are shown when the part does not start.
    onLine(part, line) {
      if (ready.has(part)) log.write(part.label, line);
    },
  });
  const watch = await watchFiles({
    paths: [path],
    async onChange() {
      const { ok, lines } = await reload({ path, started: file, folders });
      for (const line of lines) log.write('up', line, !ok);
    },
  });
  try {
    for (const warning of file.warnings) log.write('up', warning);
    if (!(await answers(file.upstream))) log.write('up', 'your application does not answer yet: start it');
    const environmentFile = await writeEnvironment(folder, services);
    printSummary(terminal, file, { path, environmentFile, administrator });
    await platform.untilStopped(signal);
  } finally {
    await watch.close();
    await platform.stop();
  }
}

const connectTimeoutMs = 1_000;

/** Whether something listens there. */
async function answers(upstream: UpFile['upstream']): Promise<boolean> {
  const socket = connect(upstream);
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(connectTimeoutMs) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function createServiceOptions({ ports, redis }: UpFile, { policies }: Folders): ServiceOptions {
  const gateway = `http://127.0.0.1:${ports.envoy}`;
  return {
    ports,
    policiesFolder: policies,
    jwtSecret: randomBytes(32).toString('base64url'),
    limiterToken: randomBytes(32).toString('base64url'),
    redisUrl: redis,
    auth: {
      externalUrl: `${gateway}${authPath}`,
      settings: {
        SVC_SITE_URL: `${gateway}/`,
        // An account needs no confirmation.
        SVC_MAILER_AUTOCONFIRM: 'true',
        SVC_API_KEYS_ENABLED: 'true',
        SVC_ORGANIZATIONS_ENABLED: 'true',
        ...signInSettings(ports),
      },
    },
  };
}
