import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { jwtSecret } from '../helpers/auth-server.ts';
import { runCommand } from '../helpers/run-command.ts';
import { testDatabase } from '../helpers/test-database.ts';

/** Runs the program in a folder with a file `.env`, and answers what it printed. */
async function runWithFile(
  t: Test,
  args: readonly string[],
  { file, variables = {} }: { file: string; variables?: Readonly<Record<string, string>> },
): Promise<string> {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  await writeFile(join(folder.path, '.env'), file);
  const { exitCode, output, errors } = await runCommand(args, { cwd: folder.path, env: variables });
  t.equal(exitCode, 0, errors);
  return output;
}

t.test('migrate uses settings of .env, which the environment overrides', async (t) => {
  const { url } = await testDatabase(t);
  const file = `SVC_SITE_URL=https://example.com
SVC_API_EXTERNAL_URL=https://auth.example.com
SVC_DB_DRIVER=postgres
DATABASE_URL=${url}
SVC_DB_NAMESPACE=of_the_file
SVC_JWT_SECRET="${jwtSecret}"
SVC_SMTP_ADMIN_EMAIL=auth@example.com
SVC_SMTP_HOST=127.0.0.1
SVC_SMTP_PORT=2525
`;
  await runWithFile(t, ['migrate'], { file });
  await runWithFile(t, ['migrate'], { file, variables: { SVC_DB_NAMESPACE: 'of_the_environment' } });
  await runWithFile(t, ['migrate'], { file });
  const sql = postgres(url, { max: 1 });
  const schemas = await sql`select schemaname from pg_tables 
    where tablename = 'users' and schemaname like 'of_the_%' order by 1`;
  await sql.end();
  t.same(
    schemas.map(({ schemaname }) => schemaname as string),
    ['of_the_environment', 'of_the_file'],
  );
});

t.test('version works without settings', async (t) => {
  t.equal(await runWithFile(t, ['version'], { file: '' }), `tollgate-auth ${packageJson.version}\n`);
});
