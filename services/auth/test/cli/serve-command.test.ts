import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';

const program = join(import.meta.dirname, '../../src/main.ts');
const shortSecret = 'a secret of 31 bytes, not of 32';
const nowhere = 'postgres://127.0.0.1:1/nowhere';

/** What a server logs that is started in production mode and ends, as it has no database. */
async function logOf(t: Test, variables: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(process.execPath, [program, 'serve'], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      LOG_LEVEL: 'warn',
      SVC_SITE_URL: 'https://example.com',
      SVC_API_EXTERNAL_URL: 'http://localhost:9999',
      SVC_DB_DRIVER: 'postgres',
      SVC_DB_DATABASE_URL: nowhere,
      SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
      SVC_SMTP_HOST: '127.0.0.1',
      SVC_SMTP_PORT: '2525',
      ...variables,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [log, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  t.equal(code, 1);
  return log;
}

t.test('a short secret is warned of, and not shown', async (t) => {
  const log = await logOf(t, { SVC_JWT_SECRET: shortSecret });
  t.match(log, /"variable":"SVC_JWT_SECRET","leastBytes":32,"@message":"secret is short/);
  t.notMatch(log, shortSecret);
  t.notMatch(await logOf(t, { SVC_JWT_SECRET: `${shortSecret}!` }), 'secret is short');
});
