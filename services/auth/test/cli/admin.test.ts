import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import t from 'tap';
import { parseArguments } from '../../src/cli/arguments.ts';
import { describeProgress } from '../../src/cli/import.ts';
import { commands } from '../../src/cli/run-command.ts';
import { adminToken } from '../helpers/admin.ts';
import { signedIn, startAuthServer } from '../helpers/auth-server.ts';
import { runOperatorCommand as run } from '../helpers/run-command.ts';
import { testDatabase } from '../helpers/test-database.ts';

t.test('import --dry-run does not change the schema', async (t) => {
  const { url } = await testDatabase(t);
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  await sql`delete from auth.tollgate_migrations where name like '0036%'`;
  await sql`drop table auth.mfa_recovery_codes, auth.mfa_recovery_code_sets`;
  t.match(await run(url, ['import', '-', '--dry-run'], '{"email":"a@example.com"}\n'), {
    exitCode: 0,
    output: 'would import 1, skipped 0, failed 0\n',
  });
  t.match(await sql`select to_regclass('auth.mfa_recovery_codes') as found`, [{ found: null }]);
});

t.test('import reports lines that fail, and repeats without harm', async (t) => {
  const { databaseUrl } = await startAuthServer(t);
  const folder = t.testdir({
    'users.ndjson': ['{"email":"a@example.com"}', '{"email":"b"}', '{"email":"c@example.com"}'].join('\n'),
  });
  const [users, errors] = [join(folder, 'users.ndjson'), join(folder, 'errors.ndjson')];
  t.match(await run(databaseUrl, ['import', users, '--dry-run']), {
    exitCode: 3,
    output: 'would import 2, skipped 0, failed 1\n',
    errors: 'line 2: Unable to validate email address: invalid format\n',
  });
  t.match(await run(databaseUrl, ['import', users, '--errors', errors, '--resume-from=2']), {
    exitCode: 3,
    output: 'imported 1, skipped 0, failed 1\n',
    // A line of progress after a second, on a busy machine.
    errors: /^(?:line 3: imported 1, .*\n)?$/,
  });
  t.match(JSON.parse(await readFile(errors, 'utf8')), { line: 2, code: 'validation_failed' });
  const good = '{"email":"a@example.com"}\n{"email":"c@example.com"}\n';
  const repeated = { exitCode: 0, output: 'imported 1, skipped 1, failed 0\n', errors: '' };
  t.match(await run(databaseUrl, ['import', '-'], good), repeated);
  const missing = join(folder, 'missing', 'file');
  t.match(await run(databaseUrl, ['import', missing]), { exitCode: 1, errors: /^ENOENT.*missing/ });
  t.match(await run(databaseUrl, ['import', users, '--errors', missing]), {
    exitCode: 1,
    errors: /^ENOENT.*missing/,
  });
});

t.test('progress of an import counts skipped lines, from the line where it resumed', (t) => {
  const counts = { imported: 0, skipped: 8_990, failed: 10, lastLine: 10_000 };
  t.equal(
    describeProgress(counts, { isDryRun: false, firstLine: 1_001, elapsedMs: 3_000 }),
    'line 10000: imported 0, skipped 8990, failed 10, 3000 lines/s',
  );
  t.end();
});

t.test('admin createuser and deleteuser create and delete users', async (t) => {
  const { call, databaseUrl } = await startAuthServer(t);
  const signIn = (password: string) =>
    call('POST', '/token?grant_type=password', { body: { email: 'ada@example.com', password } });

  const created = await run(
    databaseUrl,
    ['admin', 'createuser', 'Ada@example.com', '--confirm', '--role', 'editor'],
    'correct horse\n',
  );
  t.match(created, { exitCode: 0, errors: '', output: /^[0-9a-f-]{36}\n$/ });
  const session = await signIn('correct horse');
  t.equal(`${signedIn(session).userId}\n`, created.output);
  t.match(session.body.user, { role: 'editor' });

  const again = await run(databaseUrl, ['admin', 'createuser', 'ada@example.com'], 'correct horse');
  t.match(again, { exitCode: 1, output: '', errors: /already been registered/ });

  const deleted = await run(databaseUrl, ['admin', 'deleteuser', 'ada@example.com']);
  t.match(deleted, { exitCode: 0, output: created.output });
  t.equal((await signIn('correct horse')).status, 400);

  const { text: log } = await call('GET', '/admin/audit?query=author:command%20line', {
    token: adminToken(),
  });
  t.match(log, /user_deleted[\s\S]*user_signedup/);
});

t.test('createuser rejects empty, short and overlong passwords', async (t) => {
  const { databaseUrl } = await startAuthServer(t);
  const create = (password: string) =>
    run(databaseUrl, ['admin', 'createuser', 'ada@example.com'], `${password}\n`);
  const tooShort = { exitCode: 1, output: '', errors: 'Password should be at least 6 characters.\n' };
  t.match(await create(''), tooShort);
  t.match(await create('short'), tooShort);
  t.match(await create('x'.repeat(73)), { exitCode: 1, output: '', errors: /cannot be longer/ });
  t.match(await create('longer'), { exitCode: 0, errors: '' }, 'nothing of the others was kept');
});

t.test('an unknown user and an unavailable database are reported', async (t) => {
  const { databaseUrl } = await startAuthServer(t);
  const [unknown, nowhere] = await Promise.all([
    run(databaseUrl, ['admin', 'deleteuser', 'eve@example.com']),
    run('postgres://127.0.0.1:1/nowhere', ['admin', 'deleteuser', 'eve@example.com']),
  ]);
  t.match(unknown, { exitCode: 1, output: '', errors: 'user not found: eve@example.com\n' });
  t.match(nowhere, { exitCode: 1, output: '', errors: /ECONNREFUSED/ });
});

t.test('missing and extra arguments are reported', async (t) => {
  const problem = (...args: string[]) => {
    const parsed = parseArguments(args, commands);
    return parsed.kind === 'invalid' ? parsed.problem : parsed.kind;
  };
  t.equal(problem('admin', 'createuser'), 'admin createuser: requires <email>');
  t.equal(
    problem('admin', 'createuser', 'a', 'secret'),
    'admin createuser: accepts <email> only',
    'no secrets',
  );
  t.equal(problem('admin', 'fire'), 'unknown command: admin fire');
  t.equal(problem('users', 'lst'), 'unknown command: users lst, did you mean users list?');
  t.equal(problem('version', '--aud', 'x'), 'version: does not accept --aud');
  t.equal(problem('users', 'list', '--plans', 'gold'), 'unknown flag --plans, did you mean --plan?');
  t.equal(problem('-x'), 'unknown flag -x');
  t.equal(problem('users', 'list', '--plan'), '--plan requires a value: --plan <text>');
  t.equal(problem('users', 'list', '--plan', '--json'), '--plan requires a value: --plan <text>');
  t.equal(problem('users', 'list', '--json=yes'), '--json does not accept a value');
  t.equal(problem('users', 'list', '--plan=-gold'), 'run');
  t.equal(problem('users'), 'help');
  t.equal(problem('users', 'ban', '--help'), 'help', 'also without its arguments');
  t.equal(problem('admin', '--help'), 'help');
  t.equal(problem('admin'), 'help', 'the help lists its commands');
  t.equal(problem('-c', 'file'), 'run', 'serve is the default command');
});

t.test('admin reencrypt encrypts existing values', async (t) => {
  const { call, databaseUrl } = await startAuthServer(t);
  await call('POST', '/signup', { body: { email: 'ada@example.com', password: 'correct horse' } });
  const reencrypt = (key: string) =>
    run(databaseUrl, ['admin', 'reencrypt'], '', {
      SVC_SECURITY_DB_ENCRYPTION_ENCRYPT: 'true',
      SVC_SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID: key,
      SVC_SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY: key.repeat(43),
    });
  const output = 'password hashes: 1\nfactor secrets: 0\nrefresh token keys: 0\nprovider secrets: 0\n';
  t.match(await reencrypt('a'), { exitCode: 0, errors: '', output });
  const refused = await reencrypt('b');
  t.equal(refused.exitCode, 1);
  t.match(
    refused.output + refused.errors,
    /encrypted with key a, which is missing from SVC_SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS/,
  );
});

t.test('admin token prints a token signed with the current key', async (t) => {
  const { call, databaseUrl } = await startAuthServer(t);
  const { exitCode, output } = await run(databaseUrl, ['admin', 'token']);
  t.equal(exitCode, 0);
  t.equal((await call('GET', '/admin/users', { token: output.trim() })).status, 200);
  const other = await run(databaseUrl, ['admin', 'token', '--role', 'svc_admin']);
  t.equal((await call('GET', '/admin/users', { token: other.output.trim() })).status, 200);

  const refused = await run(databaseUrl, ['admin', 'token', '--role', 'authenticated']);
  t.match(refused, {
    exitCode: 1,
    output: '',
    errors: /authenticated is not allowed to use \/admin: SVC_JWT_ADMIN_ROLES has service_role/,
  });
});
