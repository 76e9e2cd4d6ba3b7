import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { profileDefaults, strictDefaults } from '../../src/config/security-profile.ts';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';
import { adminToken } from '../helpers/admin.ts';
import { jwtSecret, signUp, startAuthServer } from '../helpers/auth-server.ts';

const environment = {
  SVC_SITE_URL: 'https://example.com',
  SVC_API_EXTERNAL_URL: 'https://auth.example.com',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://127.0.0.1:1/none',
  SVC_JWT_SECRET: jwtSecret,
};
const strict = { ...environment, SVC_SECURITY_PROFILE: 'strict' };

function settingsOf(variables: Readonly<Record<string, string>>) {
  const read = readSettings(variables);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.settings;
}

t.test('strict has another valid default for each setting of its table, and for no other one', async (t) => {
  t.equal(
    profileDefaults(settingsSpec).length,
    Object.keys(strictDefaults).length,
    'keys are those of settings',
  );
  const [standard, profile] = [settingsOf(environment), settingsOf(strict)];
  const changed = Object.keys(settingsSpec).filter(
    (key) =>
      JSON.stringify(standard[key as keyof typeof standard]) !==
      JSON.stringify(profile[key as keyof typeof profile]),
  );
  t.same(new Set(changed), new Set(['securityProfile', ...Object.keys(strictDefaults)]));
  const docs = await readFile(join(import.meta.dirname, '../../../../docs/settings-auth.md'), 'utf8');
  for (const { setting, value } of profileDefaults(settingsSpec))
    t.match(
      docs,
      new RegExp(`^\\| \`${setting.env}\`.*\\| \`${value}\` +\\|`, 'm'),
      `docs have ${setting.env}`,
    );
});

t.test('a setting of its own overrides the profile by any of its names, an empty one does not', (t) => {
  t.equal(settingsOf({ ...strict, GOTRUE_PASSWORD_MIN_LENGTH: '9' }).passwordMinLength, 9);
  t.equal(settingsOf({ ...strict, GOTRUE_PASSWORD_MIN_LENGTH: '' }).passwordMinLength, 12);
  t.match(readSettings({ ...strict, GOTRUE_PASSWORD_MIN_LENGTH: 'x' }), {
    problems: [{ variable: 'GOTRUE_PASSWORD_MIN_LENGTH' }],
  });
  t.end();
});

t.test('strict rejects a short JWT_SECRET, and an unknown profile is an error', (t) => {
  t.match(readSettings({ ...strict, SVC_JWT_SECRET: 'x'.repeat(31) }), {
    ok: false,
    problems: [
      {
        variable: 'SVC_JWT_SECRET',
        value: '(hidden)',
        expected: 'at least 32 bytes, because SVC_SECURITY_PROFILE is strict',
      },
    ],
  });
  t.ok(readSettings({ ...environment, SVC_JWT_SECRET: 'short' }).ok);
  t.match(readSettings({ ...environment, SVC_SECURITY_PROFILE: 'strictest' }), {
    problems: [{ variable: 'SVC_SECURITY_PROFILE', expected: 'one of standard, strict' }],
  });
  t.end();
});

t.test('with a required issuer, tokens without it are rejected', async (t) => {
  const server = await startAuthServer(t, { JWT_ISSUER_REQUIRED: 'true' });
  const { accessToken: token } = await signUp(server);
  t.match(await server.call('GET', '/user', { token }), { status: 200 });
  for (const iss of [undefined, 'https://other.example.com'])
    t.match(await server.call('GET', '/admin/users', { token: adminToken({ iss }) }), {
      status: 403,
      body: { error_code: 'bad_jwt', msg: /iss is not the issuer of this server/ },
    });
  const own = adminToken({ iss: 'http://localhost:9999' });
  t.match(await server.call('GET', '/admin/users', { token: own }), { status: 200 });
});
