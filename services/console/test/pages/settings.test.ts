// Settings of all services, and signing keys, against a real auth server and two limiters.
import { generateKeyPairSync } from 'node:crypto';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { authServerSecret } from '@tollgate/testkit/services';
import t from 'tap';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';
import { authForLimiters, startLimiter } from '../support/limiter.ts';

const attack = '<img src=x onerror="window.attacked = true">';
const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 5 } }]';
const canary = 'canary-of-the-test';
const secret = Buffer.from(authServerSecret).toString('base64url');

/** A file of keys during a rotation: a new key has been added. */
function keysOfRotation(): string {
  const pair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  const now = Math.floor(Date.now() / 1000);
  return JSON.stringify([
    { ...pair(), kid: 'current', alg: 'ES256', key_ops: ['sign', 'verify'], svc_added_at: now - 86_400 },
    { ...pair(), kid: 'next', alg: 'ES256', key_ops: ['verify'], svc_added_at: now },
    { kty: 'oct', k: secret, kid: 'operators', alg: 'HS256', key_ops: ['verify'] },
  ]);
}

t.setTimeout(240_000);
t.test('settings of the console', { skip }, async (t) => {
  const folder = makeTextFolder(t);
  folder.write('keys.json', keysOfRotation());
  const suite = await ConsoleSuite.start(t, {
    auth: {
      ...authForLimiters,
      ...{ SVC_PAGES_NAME: attack, SVC_SMTP_PASS: canary, SVC_SITE_ULR: 'https://shop.example.com' },
      SVC_JWT_KEYS_FILE: `${folder.path}/keys.json`,
    },
    settings: { CONSOLE_XDS_URL: 'http://127.0.0.1:1' },
    limiterUrls: async (auth) => {
      const start = (ratio: string) =>
        startLimiter(t, auth, { 'config/shop.yaml': rules }, { NEAR_LIMIT_RATIO: ratio });
      return [(await start('0.5')).url, (await start('0.7')).url];
    },
  });
  const page = await suite.signIn('/settings');
  const show = async (path: string) => {
    await page.open(suite.url + path);
    return readText(page);
  };

  await t.test(
    'changed settings are listed with value, default and source; warnings are on top',
    async (t) => {
      const text = await readText(page);
      t.match(text, /The xDS server does not answer.*Warnings of the start.*Settings in force/s);
      t.match(text, /warning unknown setting\s+Auth server.*variable SVC_SITE_ULR/s);
      t.match(text, /SVC_JWT_KEYS_FILE\n.*Auth server\s+\S*keys\.json\s.*environment SVC_JWT_KEYS_FILE/s);
      t.match(text, /CONSOLE_XDS_URL\n.*Console\s+http:\/\/127\.0\.0\.1:1/s, 'also of the console itself');
      t.notMatch(text, 'SVC_SESSIONS_TIMEBOX', 'it has its default');
      t.match(text, attack, 'as text');
      t.notOk(await page.evaluate('window.attacked'));
    },
  );

  await t.test('secrets are set or not, and have no value', async (t) => {
    const text = await show('/settings?show=all&find=+smtp_pass+');
    t.match(text, /SVC_SMTP_PASS\n.*\sset\s/s);
    const source = await page.evaluate(`fetch('/settings?show=all').then((response) => response.text())`);
    for (const hidden of [canary, authServerSecret, secret]) t.notMatch(source, hidden);
  });

  await t.test('replicas that differ say so', async (t) => {
    const text = await show('/settings?show=different');
    t.match(text, /NEAR_LIMIT_RATIO\n.*replicas differ.*\s0\.5\s.*\s0\.7\s/s);
    t.match(text, /[1-9]\d* of \d{3} settings/);
    t.match(text, 'Rate limit service: 2 of 2 replicas answered.');
    t.match(
      text,
      /Auth server: 1 of 1 address answered, .*the others were not asked\.\s+To ask all, set CONSOLE_AUTH_REPLICA_URLS/,
    );
    t.match(text, 'xDS server: 0 of 1 address answered');
  });

  await t.test('all settings have pages, and are found by name, alias and description', async (t) => {
    t.match(await show('/settings?show=all'), /100 |Next page/);
    t.match(await show('/settings?show=all&cursor=100'), 'First page');
    t.notMatch(await show('/settings?show=all&cursor=-1'), 'No setting matches', 'the first page');
    t.match(
      await show('/settings?show=all&find=sessions_timebox'),
      /SVC_SESSIONS_TIMEBOX\n.*\s0s\s+0s\s+default/s,
    );
    t.match(await show('/settings?find=nothing-has-this-name'), 'No changed setting matches');
  });

  await t.test('signing keys have their state, and the next step has a command to paste', async (t) => {
    const text = await show('/settings/keys');
    t.match(text, /current.*ES256\s+signs\s+yes\s+1 d ago/s);
    t.match(text, /next.*upcoming\s+yes/s);
    t.match(text, /1 of 1 address answered.*may have other keys: wait two minutes.*Rotation/s);
    t.match(text, /operators.*HS256\s+verifies only\s+no, it is a secret/s);
    t.match(text, /Sign with the new key next.*in \d+ min: replicas and caches/s);
    t.match(text, `tollgate signing-keys rotate --file ${folder.path}/keys.json`);
    t.match(text, /kubectl .*tollgate signing-keys rotate --file - --emit kubernetes/);
    t.equal(
      await page.evaluate(`document.querySelector('[aria-current=step]').innerText.includes('Sign')`),
      true,
    );
  });
});
