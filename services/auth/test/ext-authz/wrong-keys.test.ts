import { randomBytes } from 'node:crypto';
import t from 'tap';
import { createKey } from '../../src/api-keys/key-format.ts';
import { administerKeys, checkKey, createKeyOf, startKeyServer } from '../helpers/api-keys.ts';

const newKey = () => createKey('tgk', { bytes: randomBytes });

t.test('wrong keys count against the address, and keys in use are accepted beyond the limit', async (t) => {
  const server = await startKeyServer(t, {
    SECURITY_TRUSTED_PROXIES: 'loopback',
    RATE_LIMIT_API_KEYS: '5',
    METRICS_EXPORTER: 'prometheus',
    METRICS_ENABLED: 'true',
    OTEL_EXPORTER_PROMETHEUS_PORT: '0',
  });
  const used = await createKeyOf(server);
  const other = await createKeyOf(server);
  const check = (key: string, address = '192.0.2.1') =>
    checkKey(server, { 'x-api-key': key, 'x-forwarded-for': address });
  t.match(await check(used.key), { status: 200 });
  const unknown = newKey();
  // An unknown key, the same from the negative cache, and misspelt ones.
  for (const key of [unknown, unknown, 'misspelt', `${newKey()}x`, newKey()])
    t.match(await check(key), { status: 401, code: 'invalid_api_key' });
  const limited = await check(newKey());
  t.match(limited, { status: 429, code: 'over_request_rate_limit' });
  t.equal(limited.headers.get('retry-after'), '12');
  t.match(await check(other.key), { status: 429 }, 'a key that this replica does not know');
  t.match(await check(used.key), { status: 200 });
  t.match(await check(newKey(), '192.0.2.2'), { status: 401 }, 'another address');
  t.match(await check(newKey(), '2001:db8::1'), { status: 401 });
  server.clock.advance(12_000);
  t.match(await check(other.key), { status: 200 });
});

t.test('a key in use is read again beyond the limit of its address, unless it is revoked', async (t) => {
  const server = await startKeyServer(t, {
    SECURITY_TRUSTED_PROXIES: 'loopback',
    RATE_LIMIT_API_KEYS: '5',
    EXT_AUTHZ_MAX_STALENESS: '1s',
  });
  const used = await createKeyOf(server);
  const revoked = await createKeyOf(server);
  const check = (key: string) => checkKey(server, { 'x-api-key': key, 'x-forwarded-for': '192.0.2.1' });
  for (const { key } of [used, revoked]) t.match(await check(key), { status: 200 });
  for (let turn = 0; turn < 5; turn += 1) t.match(await check(newKey()), { status: 401 });
  t.match(await check(newKey()), { status: 429 });
  server.clock.advance(1_000);
  t.match(await check(used.key), { status: 200 }, 'after the maximum staleness');
  await administerKeys(server, 'PUT', `/${used.id}`, { plan: 'pro' });
  t.match(await check(used.key), { status: 200 }, 'after a change');
  await administerKeys(server, 'DELETE', `/${revoked.id}`);
  t.match(await check(revoked.key), { status: 401, code: 'invalid_api_key' });
  t.match(await check(revoked.key), { status: 429 }, 'a revoked key is a wrong one');
});

t.test('a limit of 0 is none', async (t) => {
  const server = await startKeyServer(t, { RATE_LIMIT_API_KEYS: '0' });
  for (let turn = 0; turn < 100; turn += 1)
    t.match(await checkKey(server, { 'x-api-key': newKey(), 'x-forwarded-for': '192.0.2.1' }), {
      status: 401,
    });
});
