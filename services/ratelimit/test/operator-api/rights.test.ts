import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { adminRights, parseAdminTokens } from '../../src/config/admin-tokens.ts';
import { operations } from '../../src/operator-api/operations.ts';
import { adminToken, startCounterApi } from '../support/counter-api.ts';

const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }]';
const tokenOf = (right: string) => `${right}-token-of-the-tests`;
const tokens = adminRights.map((right) => `${right}-only:${right}:${tokenOf(right)}`).join(', ');
const routes = Object.values(operations);

t.test('each route accepts the tokens with its right, and that of ADMIN_TOKEN', async (t) => {
  const { base, logLines } = await startCounterApi(t, {
    rules: { 'shop.yaml': rules },
    env: { ADMIN_TOKENS: tokens },
  });
  const status = async (method: string, path: string, token: string) => {
    const response = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(method !== 'GET' && { body: '{}' }),
    });
    // Parsed boundary: errors are JSON objects.
    const { code, message } = (await response.json()) as { code?: string; message?: string };
    return { status: response.status, code, message };
  };
  t.ok(routes.length >= 9);
  for (const { method, path, right } of routes) {
    for (const other of adminRights) {
      const answer = await status(method, path, tokenOf(other));
      if (other === right) t.not(answer.status, 403, `${method} ${path} with ${other}`);
      else
        t.strictSame(
          answer,
          { status: 403, code: 'right_missing', message: `the token ${other}-only lacks the right ${right}` },
          `${method} ${path} with ${other}`,
        );
      t.not(answer.status, 401);
    }
    t.notOk([401, 403].includes((await status(method, path, adminToken)).status), `${method} ${path}`);
    t.equal((await status(method, path, 'another-token-of-the-tests')).status, 401);
  }
  const response = await fetch(`${base}/v1/counters/reset`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokenOf('write')}` },
    body: JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }] }),
  });
  t.equal(response.status, 200);
  t.match(
    logLines.find(({ audit }) => audit === true),
    { action: 'reset', caller: 'write-only' },
  );
});

t.test('settings in force are listed without secrets', async (t) => {
  const { call } = await startCounterApi(t, { env: { ADMIN_TOKENS: tokens, NEAR_LIMIT_RATIO: '0.5' } });
  const { json } = await call('/v1/settings');
  for (const secret of [adminToken, ...adminRights.map(tokenOf)]) t.notMatch(JSON.stringify(json), secret);
  t.match(json, { service: 'ratelimit', version: '0.0.0', warnings: [] });
  const settings = json.settings as readonly Readonly<Record<string, unknown>>[]; // as documented
  const find = (name: string) => settings.find((setting) => setting.name === name);
  t.match(find('NEAR_LIMIT_RATIO'), { value: '0.5', default: '0.8', changed: true, source: 'environment' });
  t.match(find('ADMIN_TOKENS'), { secret: true, set: true, value: undefined });
});

t.test('documentation has the right of each route', async (t) => {
  const page = await readFile(join(import.meta.dirname, '../../../../docs/counter-api.md'), 'utf8');
  for (const { method, path, right } of routes)
    t.match(page, new RegExp(`^\\| \`${right}\` .*\`${method} ${path}\``, 'm'), `${method} ${path}`);
});

t.test('tokens are parsed with their names and rights', (t) => {
  t.strictSame(parseAdminTokens(' '), []);
  t.match(parseAdminTokens('app:read+reserve:0123456789abcdef'), [
    { name: 'app', rights: new Set(['read', 'reserve']), token: '0123456789abcdef' },
  ]);
  for (const invalid of [
    'app:read:short',
    'app:all:0123456789abcdef',
    'app::0123456789abcdef',
    'App:read:0123456789abcdef',
    'read:0123456789abcdef',
    'app:read:0123456789abcdef,app:write:0123456789abcdee',
    'a:read:0123456789abcdef,b:write:0123456789abcdef',
    'a:read:0123456789abcdef,',
  ])
    t.equal(parseAdminTokens(invalid), undefined, invalid);
  t.end();
});
