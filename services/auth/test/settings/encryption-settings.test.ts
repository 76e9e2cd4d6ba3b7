import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';

const key = 'k'.repeat(43);
const prefix = 'SVC_SECURITY_DB_ENCRYPTION';

function problemsOf(variables: Readonly<Record<string, string>>): string[] {
  const env = Object.entries(variables).map(([name, value]) => [`${prefix}_${name}`, value]);
  const read = readSettings({
    SVC_MODE: 'development',
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'http://localhost:9999',
    SVC_DB_DRIVER: 'postgres',
    SVC_DB_DATABASE_URL: 'postgres://localhost/none',
    SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
    ...Object.fromEntries(env),
  });
  return read.ok ? [] : read.problems.map((problem) => JSON.stringify(problem));
}

t.test('encryption needs an id and a key of 32 bytes', (t) => {
  t.same(problemsOf({ ENCRYPT: 'true', ENCRYPTION_KEY_ID: 'a', ENCRYPTION_KEY: key }), []);
  const [noId = '', noKey = '', ...more] = problemsOf({ ENCRYPT: 'true' });
  t.match(noId, `${prefix}_ENCRYPTION_KEY_ID`);
  t.match(noKey, `${prefix}_ENCRYPTION_KEY`);
  t.same(more, []);
  for (const wrong of ['k'.repeat(42), `${key}kk`, `${'k'.repeat(42)}/`]) {
    const problems = problemsOf({ ENCRYPT: 'true', ENCRYPTION_KEY_ID: 'a', ENCRYPTION_KEY: wrong });
    t.equal(problems.length, 1, wrong);
    t.match(problems[0], '32 bytes in base64url');
    t.notMatch(problems[0], wrong, 'and keeps it to itself');
  }
  t.equal(problemsOf({ ENCRYPTION_KEY_ID: 'a:b' }).length, 1);
  t.end();
});

t.test('every key that decrypts is one, and an id means one key', (t) => {
  const encrypting = { ENCRYPT: 'true', ENCRYPTION_KEY_ID: 'a', ENCRYPTION_KEY: key };
  t.same(problemsOf({ ...encrypting, DECRYPTION_KEYS: `a:${key},old:${'o'.repeat(43)}=` }), []);
  const [short = ''] = problemsOf({ DECRYPTION_KEYS: `a:${key},old:short` });
  t.match(short, /DECRYPTION_KEYS.*the key old to be 32 bytes/);
  t.notMatch(short, key);
  const [other = ''] = problemsOf({ ...encrypting, DECRYPTION_KEYS: `a:${'o'.repeat(43)}` });
  t.match(other, /the key a to be the one that encrypts, or to have another id/);
  t.end();
});
