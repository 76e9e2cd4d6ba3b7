import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import t from 'tap';
import { importApiKeys } from '../../src/admin/import/api-keys.ts';
import { adminToken } from '../helpers/admin.ts';
import { administerKeys, checkKey, createKeyOf, startKeyServer } from '../helpers/api-keys.ts';
import { type AuthServer, callServer, signUp } from '../helpers/auth-server.ts';
import { countingServices } from '../helpers/counting-services.ts';
import { insertUser, metadata } from '../helpers/test-store.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

function importKeys({ url }: AuthServer, lines: readonly unknown[], query = '') {
  const body = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  return callServer(url, 'POST', `/admin/api-keys/import${query}`, {
    token: adminToken(),
    headers: { 'content-type': 'application/x-ndjson' },
    body,
  });
}

t.test('10,000 digests are imported, and their keys are accepted', async (t) => {
  const server = await startKeyServer(t, { API_KEYS_IMPORTED_PREFIXES: 'acme-,old_' });
  const ada = await signUp(server);
  const keys = Array.from({ length: 10_000 }, (_, index) => `acme-${index}-${randomUUID()}`);
  const lines = keys.map((key, index) => ({
    digest: sha256(key),
    name: `key ${index}`,
    prefix: 'acme',
    last4: key.slice(-4),
    plan: index % 2 === 0 ? 'pro' : null,
    ...(index % 2 === 1 && { owner: { user_id: ada.userId } }),
  }));
  t.match(await importKeys(server, lines, '?dry_run=true'), {
    body: { imported: 10_000, skipped: 0, failed: 0 },
  });
  t.same((await administerKeys(server, 'GET')).body.api_keys, [], 'a dry run stores nothing');
  t.match(await importKeys(server, lines), {
    status: 200,
    body: { imported: 10_000, skipped: 0, failed: 0, last_line: 10_000, errors: [] },
  });
  t.match(await importKeys(server, lines.slice(0, 10)), { body: { imported: 0, skipped: 10, failed: 0 } });
  for (const [index, plan] of [
    [0, 'pro'],
    [9_999, 'free'],
  ] as const)
    for (const headers of [{ 'x-api-key': keys[index] ?? '' }, { authorization: `Bearer ${keys[index]}` }]) {
      const answer = await checkKey(server, headers);
      t.equal(answer.status, 200);
      t.equal(answer.headers.get('x-auth-plan'), plan);
    }
  t.match(await checkKey(server, { 'x-api-key': 'acme-unknown' }), { status: 401 });
});

t.test('an import by an API key reads the owners of a batch with one statement', async (t) => {
  const { services, during } = await countingServices(t, { SVC_API_KEYS_ENABLED: 'true' });
  const { id } = await insertUser(services.store, { email: 'ada@example.com' });
  const importLines = (count: number) => {
    const lines = Array.from({ length: count }, (_, index) =>
      JSON.stringify({ digest: sha256(`${count} ${index}`), name: 'x', owner: { user_id: id } }),
    );
    const actor = {
      kind: 'api_key',
      id: randomUUID(),
      email: 'importer',
      phone: '',
      userMetadata: {},
    } as const;
    return during(() =>
      importApiKeys(services, Readable.from([Buffer.from(lines.join('\n'))]), {
        ...{ actor, scopes: new Set(['keys:write']), metadata, isDryRun: false, lastLine: 10_000 },
        ...{ onProblem: () => undefined, onProgress: () => undefined },
      }),
    );
  };
  const one = await importLines(1);
  t.match(one.outcome, { imported: 1 });
  const many = await importLines(500);
  t.match(many.outcome, { imported: 500 });
  t.equal(many.work.statements, one.work.statements);
});

t.test('invalid lines are reported, and the others imported', async (t) => {
  const server = await startKeyServer(t);
  const digest = sha256('a');
  const { status, body } = await importKeys(server, [
    { digest, name: 'good' },
    { digest, name: 'the same' },
    { digest: 'abc', name: 'short' },
    { digest: sha256('b') },
    { digest: sha256('c'), name: 'c', limits: 5 },
    { digest: sha256('d'), name: 'd', owner: { user_id: randomUUID() } },
    { digest: sha256('e'), name: 'e', expires_at: '2020-01-01T00:00:00Z' },
    '[]',
    '{',
  ]);
  t.equal(status, 200);
  t.match(body, {
    imported: 1,
    skipped: 1,
    failed: 7,
    errors: [
      { line: 3, code: 'validation_failed', message: /digest/ },
      { line: 4, code: 'validation_failed', message: /name/ },
      { line: 5, code: 'validation_failed', message: /limits|additional/ },
      { line: 7, code: 'validation_failed', message: /expires_at/ },
      { line: 8, code: 'bad_json' },
      { line: 9, code: 'bad_json' },
      { line: 6, code: 'validation_failed', message: /owner/ },
    ],
  });
  const entries = await server.call('GET', '/admin/audit?action=api_keys_imported', { token: adminToken() });
  t.match(JSON.parse(entries.text), [{ payload: { traits: { first_line: 1, last_line: 6 } } }]);
});

t.test('more lines than a request may have are left out', async (t) => {
  const server = await startKeyServer(t);
  const lines = Array.from({ length: 10_001 }, (_, index) => ({ digest: sha256(`${index}`), name: 'x' }));
  t.match(await importKeys(server, lines), { status: 413, body: { imported: 10_000, last_line: 10_000 } });
});

t.test('keys of any form are imported with *, for the header only', async (t) => {
  const server = await startKeyServer(t, { API_KEYS_IMPORTED_PREFIXES: '*' });
  const text = 'any text that was a key';
  await importKeys(server, [{ digest: sha256(text), name: 'old' }]);
  t.match(await checkKey(server, { 'x-api-key': text }), { status: 200 });
  t.match(await checkKey(server, { 'x-api-key': 'x'.repeat(257) }), { status: 401, code: 'invalid_api_key' });
  t.match(await checkKey(server, { authorization: 'Bearer other' }), { status: 401, code: 'bad_jwt' });
});

t.test('a service without a gateway verifies keys', async (t) => {
  const server = await startKeyServer(t);
  const ada = await signUp(server);
  const { id, key } = await createKeyOf(server, {
    owner: { user_id: ada.userId },
    plan: 'pro',
    scopes: ['read'],
    limit: { requests_per_unit: 5, unit: 'minute' },
    allowed_networks: ['192.0.2.0/24'],
  });
  const verify = async (body: object) => (await administerKeys(server, 'POST', '/verify', body)).body;
  t.strictSame(await verify({ key, address: '192.0.2.1' }), {
    valid: true,
    code: 'ok',
    caller: {
      user_id: ada.userId,
      key_id: id,
      role: 'authenticated',
      plan: 'pro',
      aal: 'aal1',
      anonymous: false,
      kind: 'api_key',
      scope: 'read',
      limit: { requests_per_unit: 5, unit: 'MINUTE' },
    },
    key: { id, name: 'test', admin_scopes: [] },
  });
  t.strictSame(await verify({ key }), { valid: false, code: 'api_key_network_not_allowed' });
  t.strictSame(await verify({ key: `${key}x` }), { valid: false, code: 'invalid_api_key' });
  await administerKeys(server, 'PUT', `/${id}`, { disabled: true });
  t.strictSame(await verify({ key, address: '192.0.2.1' }), { valid: false, code: 'api_key_disabled' });
  t.match(await server.call('POST', '/admin/api-keys/verify', { token: ada.accessToken, body: { key } }), {
    status: 403,
  });
});
