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
  stop(): Promise<void>;
}

const program = join(import.meta.dirname, '../../../services/auth/src/main.ts');
const startTimeoutMs = 30_000;
/** Enough to see why it did not start. */
const maxLogChars = 20_000;

/** Starts both as production would; users are confirmed at once, so that no mail is sent. */
export async function startAuthService(): Promise<AuthService> {
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
    },
  });
  const exited = once(child, 'exit');
  let log = '';
  let port: string | undefined;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    // The log of a run is long; only its beginning is looked at.
    if (port !== undefined) return;
    log = (log + text).slice(-maxLogChars);
    port = /"http":(\d+)/.exec(log)?.[1];
  });
  async function stop(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
    await database.stop();
    folder.remove();
  }
  const deadline = performance.now() + startTimeoutMs;
  while (port === undefined) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL');
      await stop();
      throw new Error(`the server did not start. Its output:\n${log}`);
    }
    await delay(10);
  }
  return { pid: child.pid ?? 0, port: Number(port), stop };
}
