import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createLogger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import { StartReport } from '@tollgate/kit/start-report';
import { temporaryFolder } from '@tollgate/testkit/folders';
import type { Test } from 'tap';
import { type App, buildApp } from '../../src/app.ts';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';
import type { StatsRegistry } from '../../src/metrics/registry.ts';

export interface StartAppOptions {
  /** Rule files by name, all in the one folder that the service reads. */
  readonly rules?: Readonly<Record<string, string>>;
  /** Rule files on trial by name, in a folder of their own. */
  readonly candidates?: Readonly<Record<string, string>>;
  /** Settings by their environment variable, over those of {@link testSettings}. */
  readonly env?: Readonly<Record<string, string>>;
  /** Unix time in milliseconds; the system's when absent. */
  readonly nowMs?: () => number;
  /** Whether to warm up before the ports open, default false: it takes a moment of each start. */
  readonly warmUp?: boolean;
  /**
   * Whether to start it, default true; a test of the start itself calls `app.lifecycle.start()`.
   */
  readonly start?: boolean;
}

export interface StartedApp {
  readonly app: App;
  /** Ports in use. */
  readonly ports: App['ports'];
  readonly stats: StatsRegistry;
  /** The directory of the rule files, which is watched. */
  readonly rulesFolder: string;
  /** The directory of the rules on trial; it exists when there are any. */
  readonly candidatesFolder: string;
  /** All log lines so far, at every level. */
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
}

/** Loopback, free ports, counters in memory, rules read in place, statistics sent nowhere. */
function testSettings(root: string): Record<string, string> {
  return {
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: '0',
    BACKEND_TYPE: 'memory',
    RUNTIME_ROOT: root,
    RUNTIME_WATCH_ROOT: 'false',
    USE_PUSHSTATS: 'false',
    DISABLE_STATS: 'true',
  };
}

/**
 * Builds the real service and starts it on free ports; it is stopped, and its folder removed, when
 * the test ends.
 *
 * @throws Error naming the settings that are wrong, or what the start threw.
 */
export async function startApp(t: Test, options: StartAppOptions = {}): Promise<StartedApp> {
  const { rules = {}, candidates, env = {}, nowMs = Date.now, start = true, warmUp = false } = options;
  const folder = temporaryFolder();
  t.teardown(() => folder.remove());
  const rulesFolder = join(folder.path, 'config');
  await writeFiles(rulesFolder, rules);
  const candidatesFolder = join(folder.path, 'candidate/config');
  if (candidates !== undefined) await writeFiles(candidatesFolder, candidates);

  const variables = {
    ...testSettings(folder.path),
    ...(candidates === undefined ? undefined : { CANDIDATE_RUNTIME_SUBDIRECTORY: 'candidate' }),
    ...env,
  };
  const read = readSettings(variables);
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  const sources = { env: variables };
  const report = new StartReport({ service: 'ratelimit', version: '0.0.0', spec: settingsSpec, sources });
  const { logger, lines: logLines } = collectingLogger(report);
  const app = await buildApp(read.settings, {
    logger,
    nowMs,
    random: Math.random,
    output: nowhere(),
    warmUp,
    report,
  });
  t.teardown(() => app.lifecycle.stop('the test has ended'));
  if (start) await app.lifecycle.start();
  return { app, ports: app.ports, stats: app.stats, rulesFolder, candidatesFolder, logLines };
}

async function writeFiles(folder: string, texts: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true });
  await Promise.all(Object.entries(texts).map(([name, text]) => writeFile(join(folder, name), text)));
}

function collectingLogger({ readLine: onLine }: StartReport) {
  const lines: Record<string, unknown>[] = [];
  // Parsed boundary: the JSON format is one object a line.
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { logger: createLogger({ level: 'trace', format: 'json', destination: { write }, onLine }), lines };
}

function nowhere(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done() });
}
