import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { asvsRequirements, evaluateAsvs } from '../../src/cli/asvs.ts';
import { readSettings, type Settings, settingsSpec } from '../../src/config/settings.ts';
import { adminToken } from '../helpers/admin.ts';
import { jwtSecret, startAuthServer } from '../helpers/auth-server.ts';
import { runCommand } from '../helpers/run-command.ts';

const environment = {
  SVC_SITE_URL: 'https://example.com',
  SVC_API_EXTERNAL_URL: 'https://auth.example.com',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://127.0.0.1:1/none',
  SVC_JWT_SECRET: jwtSecret,
};

function settingsWith(variables: Readonly<Record<string, string>>): Settings {
  const read = readSettings({ ...environment, ...variables });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.settings;
}

function failing(variables: Readonly<Record<string, string>>): string[] {
  return evaluateAsvs(settingsWith(variables)).flatMap(({ id, state }) => (state === 'fails' ? [id] : []));
}

t.test('every requirement that may hold names a test that exists', async (t) => {
  const ids = asvsRequirements.map(({ id }) => id);
  t.equal(new Set(ids).size, ids.length);
  for (const { id, proof, holds, decidedBy } of asvsRequirements) {
    t.equal(holds === undefined, decidedBy === undefined, id);
    if (proof === undefined) t.equal(holds, undefined, `${id} has no proof and does not hold`);
    else
      t.match(
        await readFile(join(import.meta.dirname, '..', proof.file), 'utf8'),
        `t.test('${proof.title}'`,
        id,
      );
  }
});

t.test('requirements fail with the settings that decide, and hold with strict', async (t) => {
  t.same(failing({}), [
    '6.2.1',
    '6.2.3',
    '6.2.4',
    '6.2.9',
    '6.2.11',
    '6.2.12',
    '6.5.5',
    '7.2.3',
    '7.2.4',
    '7.3.1',
    '7.3.2',
    '7.5.1',
    '7.5.2',
    '7.6.2',
    '9.2.3',
    '9.2.4',
  ]);
  // Ends the sessions of other devices, so that a profile must not choose it.
  t.same(failing({ SVC_SECURITY_PROFILE: 'strict' }), ['7.2.4']);
  t.same(failing({ SVC_SECURITY_PROFILE: 'strict', SVC_SESSIONS_SINGLE_PER_USER: 'true' }), []);
  const strict = { SVC_SECURITY_PROFILE: 'strict', SVC_SESSIONS_SINGLE_PER_USER: 'true' };
  for (const [id, weaker] of [
    ['6.2.1', { passwordMinLength: '7' }],
    ['6.2.3', { updatePasswordRequireCurrentPassword: 'false' }],
    ['6.2.4', { passwordHibpEnabled: 'false' }],
    ['6.2.5', { passwordRequiredCharacters: 'abc' }],
    ['6.5.5', { smsOtpExpMs: '11m' }],
    ['7.2.3', { tokenDigests: 'false' }],
    ['7.2.4', { sessionSinglePerUser: 'false' }],
    ['7.3.1', { sessionInactivityTimeoutMs: '0' }],
    ['7.3.2', { sessionTimeboxMs: '0' }],
    ['7.4.1', { statefulBearer: 'false' }],
    ['6.2.9', { passwordMaxBytes: '72' }],
    ['6.2.11', { passwordRejectContext: 'false' }],
    ['9.2.3', { jwtAudienceRequired: 'false' }],
    ['9.2.4', { jwtAudienceRequired: 'false' }],
    ['7.5.1', { recentSignInMs: '0' }],
    ['7.5.2', { recentSignInMs: '0' }],
    ['7.6.2', { mailerLinkPageEnabled: 'false' }],
  ] as const) {
    const variables = Object.entries(weaker).map(([key, value]) => [
      settingsSpec[key as keyof typeof settingsSpec].env, // a key of the list above
      value,
    ]);
    t.ok(
      failing({ ...strict, ...Object.fromEntries(variables) }).includes(id),
      `${id} ${JSON.stringify(weaker)}`,
    );
  }
});

t.test('check --asvs prints a line for each requirement, and fails if one fails', async (t) => {
  const run = (variables: Readonly<Record<string, string>>, ...args: readonly string[]) =>
    runCommand(['check', '--asvs', ...args], { env: { ...environment, ...variables } });
  const { exitCode, output } = await run({});
  t.equal(exitCode, 1);
  t.match(output, /^6\.2\.1 +fails +.*\(SVC_PASSWORD_MIN_LENGTH\)$/m);
  t.match(output, /^9\.1\.1 +holds /m);
  t.match(output, /^6\.8\.4 +not applicable /m);
  t.notMatch(output, /^\d\S+ +open /m);
  for (const { id } of asvsRequirements) t.match(output, new RegExp(`^${id.replaceAll('.', '\\.')} `, 'm'));
  const strict = await run(
    { SVC_SECURITY_PROFILE: 'strict', SVC_SESSIONS_SINGLE_PER_USER: 'true' },
    '--json',
  );
  t.equal(strict.exitCode, 0, strict.errors);
  t.same(JSON.parse(strict.output)[3], {
    id: '6.2.1',
    text: 'passwords have at least 8 characters',
    state: 'holds',
    detail: 'SVC_PASSWORD_MIN_LENGTH',
  });
});

t.test('passwords of any characters are verified exactly, for years', async (t) => {
  const server = await startAuthServer(t, {
    SECURITY_PROFILE: 'strict',
    PASSWORD_HIBP_ENABLED: 'false',
    SECURITY_UNIFORM_ANSWERS: 'false',
  });
  const users = await server.call('GET', '/admin/users', {
    token: adminToken({ iss: 'http://localhost:9999', aud: 'authenticated' }),
  });
  t.match(users, { status: 200, body: { users: { length: 0 } } }, 'no default accounts');
  const email = 'ada@example.com';
  for (const password of ['only lower case letters', ' Spaces and ÄÖÜ 🔑 ', 'x'.repeat(72)]) {
    const body = { email: `${password.length}${email}`, password };
    t.equal((await server.call('POST', '/signup', { body })).status, 200, password);
    const signIn = async (given: string) =>
      (await server.call('POST', '/token?grant_type=password', { body: { ...body, password: given } }))
        .status;
    t.equal(await signIn(password), 200);
    t.equal(await signIn(password.toUpperCase()), 400, 'case');
    t.equal(await signIn(password.slice(0, -1)), 400, 'cut');
    server.clock.advance(10 * 365 * 86_400_000);
    t.equal(await signIn(password), 200, 'after ten years');
  }
});
