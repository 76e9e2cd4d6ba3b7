import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startEmbeddedPostgres } from '@tollgate/embedded-postgres/embedded-postgres';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';

/** The server that is measured, with a durable PostgreSQL of its own, each a process. */
export interface AuthService {
  readonly pid: number;
  readonly port: number;
  /** Where Envoy asks it. */
  readonly extAuthzPort: number;
  stop(): Promise<void>;
}

const program = join(import.meta.dirname, '../../../services/auth/src/main.ts');
const startTimeoutMs = 30_000;
/** Enough to see why it did not start. */
const maxLogChars = 20_000;

/** Starts both as production would, with more settings if given; users are confirmed at once, so that no mail is sent. */
export async function startAuthService(
  settings: Readonly<Record<string, string>> = {},
): Promise<AuthService> {
  const folder = temporaryFolder();
  const database = await startEmbeddedPostgres({ folder: folder.path });
  const child = spawn(process.execPath, [program, 'serve'], {
    cwd: folder.path,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      SVC_EXT_AUTHZ_GRPC_PORT: '0',
      SVC_EXT_AUTHZ_HTTP_PORT: '0',
      DATABASE_URL: database.url('postgres'),
      SVC_API_HOST: '127.0.0.1',
      SVC_SITE_URL: 'http://localhost:3000',
      SVC_API_EXTERNAL_URL: 'http://localhost:8081',
      SVC_DB_DRIVER: 'postgres',
      SVC_JWT_SECRET: 'a secret for a benchmark, long enough for HS256',
      SVC_MAILER_AUTOCONFIRM: 'true',
      SVC_SMTP_ADMIN_EMAIL: 'auth@localhost',
      SVC_SMTP_HOST: '127.0.0.1',
      SVC_SMTP_PORT: '25',
      ...settings,
    },
  });
  const exited = once(child, 'exit');
  let log = '';
  let ports: Pick<AuthService, 'port' | 'extAuthzPort'> | undefined;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    // The log of a run is long; only its beginning is looked at.
    if (ports !== undefined) return;
    log = (log + text).slice(-maxLogChars);
    ports = portsIn(log);
  });
  async function stop(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
    await database.stop();
    folder.remove();
  }
  const deadline = performance.now() + startTimeoutMs;
  while (ports === undefined) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL');
      await stop();
      throw new Error(`the server did not start. Its output:\n${log}`);
    }
    await delay(10);
  }
  return { pid: child.pid ?? 0, ...ports, stop };
}

/** From the line that announces them. */
function portsIn(log: string): Pick<AuthService, 'port' | 'extAuthzPort'> | undefined {
  const port = /"http":(\d+)/.exec(log)?.[1];
  const extAuthzPort = /"extAuthzGrpc":(\d+)/.exec(log)?.[1];
  if (port === undefined || extAuthzPort === undefined) return undefined;
  return { port: Number(port), extAuthzPort: Number(extAuthzPort) };
}
