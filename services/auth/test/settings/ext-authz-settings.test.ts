import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';

const required = {
  SVC_MODE: 'development',
  SVC_SITE_URL: 'https://example.com',
  SVC_API_EXTERNAL_URL: 'https://auth.example.com',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://u:p@db/auth',
  SVC_JWT_SECRET: 'secret',
};

function problemsOf(part: Readonly<Record<string, string>>): string[] {
  const env = Object.entries(part).map(([name, value]) => [`SVC_EXT_AUTHZ_${name}`, value]);
  const read = readSettings({ ...required, ...Object.fromEntries(env) });
  return read.ok ? [] : read.problems.map(({ variable, expected }) => `${variable}: ${expected}`);
}

t.test('a certificate and its key are needed together', async (t) => {
  const expected = 'a PEM file: certificate and key belong together';
  t.same(problemsOf({ TLS_CERT: 'a.crt' }), [`SVC_EXT_AUTHZ_TLS_KEY: ${expected}`]);
  t.same(problemsOf({ TLS_KEY: 'a.key' }), [`SVC_EXT_AUTHZ_TLS_CERT: ${expected}`]);
  t.same(problemsOf({ TLS_CERT: 'a.crt', TLS_KEY: 'a.key' }), []);
});

t.test('clients can be asked for a certificate only over TLS, and for a name only with one', async (t) => {
  t.same(problemsOf({ TLS_CA: 'ca.crt' }), [
    'SVC_EXT_AUTHZ_TLS_CERT: a PEM file, because SVC_EXT_AUTHZ_TLS_CA is set',
  ]);
  t.same(problemsOf({ TLS_CERT: 'a.crt', TLS_KEY: 'a.key', TLS_CLIENT_SAN: 'envoy' }), [
    'SVC_EXT_AUTHZ_TLS_CA: a PEM file, because SVC_EXT_AUTHZ_TLS_CLIENT_SAN is set',
  ]);
  t.same(problemsOf({ TLS_CERT: 'a.crt', TLS_KEY: 'a.key', TLS_CA: 'ca.crt', TLS_CLIENT_SAN: 'envoy' }), []);
});

t.test('nobody can be told of in less than a second', async (t) => {
  t.match(problemsOf({ MAX_STALENESS: '10ms' }), [/^SVC_EXT_AUTHZ_MAX_STALENESS: .* 1s or more/]);
});
