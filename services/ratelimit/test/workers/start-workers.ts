import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { programEnvironment, type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';
import { type Redis, startRedis } from '@tollgate/testkit/redis';
import { freePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import type { TrialReport } from '../../src/trial/report.ts';

export const program = join(import.meta.dirname, '../../src/main.ts');

const rules = `
domain: demo
descriptors:
  - key: tenant
    rate_limit: { unit: year, requests_per_unit: 1000000 }
`;

type LogLine = Readonly<Record<string, unknown>>;

export interface Workers extends ServerProcess {
  readonly ports: { readonly http: number; readonly grpc: number; readonly debug: number };
  readonly redis: Redis;
  /** Lines of the log with this message. */
  lines(message: string): LogLine[];
  /** Whether a decision of `/json` was made and allowed the request. */
  decide(): Promise<boolean>;
  health(): Promise<number>;
  stats(): Promise<Record<string, string>>;
  trial(): Promise<TrialReport>;
}

/** Settings of a service with workers, on ports that are free; rules are in a new folder. */
export async function workersEnv(t: Test, redis: Redis, env: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder();
  t.teardown(() => folder.remove());
  mkdirSync(join(folder.path, 'config'));
  writeFileSync(join(folder.path, 'config/demo.yaml'), rules);
  // Read with CANDIDATE_RUNTIME_SUBDIRECTORY only.
  mkdirSync(join(folder.path, 'candidate/config'), { recursive: true });
  writeFileSync(join(folder.path, 'candidate/config/demo.yaml'), rules.replace('1000000', '4'));
  return {
    WORKERS: '2',
    HOST: '127.0.0.1',
    PORT: String(await freePort()),
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(await freePort()),
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: String(await freePort()),
    KVSTORE_URL: redis.address,
    RUNTIME_ROOT: folder.path,
    RUNTIME_WATCH_ROOT: 'false',
    USE_PUSHSTATS: 'false',
    LOG_LEVEL: 'info',
    LOG_FORMAT: 'json',
    // Rarely written, because without a sink statistics go to the output, which has the log.
    STATS_FLUSH_INTERVAL: '1h',
    ...env,
  };
}

/** Starts the supervisor with two workers and waits until they listen. Needs a Redis of its own. */
export async function startWorkers(t: Test, env: Readonly<Record<string, string>> = {}): Promise<Workers> {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const settings = await workersEnv(t, redis, env);
  const ports = {
    http: Number(settings.PORT),
    grpc: Number(settings.GRPC_PORT),
    debug: Number(settings.DEBUG_PORT),
  };
  const server = await startServerProcess({
    command: process.execPath,
    args: [program],
    env: programEnvironment(settings),
    async ready() {
      const response = await fetch(`http://127.0.0.1:${ports.http}/healthcheck`);
      if (!response.ok) throw new Error(`health: ${response.status}`);
    },
  });
  t.teardown(() => server.stop());
  const lines = (message: string) => parseLog(server.logs()).filter((line) => line['@message'] === message);
  return {
    ...server,
    ports,
    redis,
    lines,
    async decide() {
      const body = JSON.stringify({
        domain: 'demo',
        descriptors: [{ entries: [{ key: 'tenant', value: 'a' }] }],
      });
      const response = await fetch(`http://127.0.0.1:${ports.http}/json`, {
        method: 'POST',
        headers: { connection: 'close' },
        body,
      });
      await response.text();
      return response.status === 200;
    },
    async health() {
      const response = await fetch(`http://127.0.0.1:${ports.http}/healthcheck`, {
        headers: { connection: 'close' },
      });
      await response.text();
      return response.status;
    },
    async stats() {
      const response = await fetch(`http://127.0.0.1:${ports.debug}/stats`, {
        headers: { connection: 'close' },
      });
      const pairs = (await response.text()).split('\n').map((line) => line.split(/: (.*)/, 2));
      return Object.fromEntries(pairs.map(([name, value = '']) => [name, value]));
    },
    async trial() {
      const headers = { connection: 'close', accept: 'application/json' };
      return JSON.parse(await (await fetch(`http://127.0.0.1:${ports.debug}/trial`, { headers })).text());
    },
  };
}

function parseLog(text: string): LogLine[] {
  return text.split('\n').flatMap((line) => {
    try {
      // Parsed boundary: the JSON format is one object a line.
      return line.startsWith('{') ? [JSON.parse(line) as LogLine] : [];
    } catch {
      // The last line may not be complete.
      return [];
    }
  });
}
