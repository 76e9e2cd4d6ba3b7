import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createXdsClient, unwrap } from '@tollgate/admin-clients/clients';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { parse } from '@tollgate/yaml/documents';
import t, { type Test } from 'tap';
import { accessConfigType } from '../../src/policies/access-config.ts';
import { callAdminApi } from '../support/admin-api.ts';
import { connectAds } from '../support/ads-client.ts';
import { startApp } from '../support/start-app.ts';
import { documents, manifestText } from '../support/yaml-manifests.ts';

const policyText = (name: string, spec = `{ hosts: [${name}.test] }`) =>
  `apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`;

/** A server for a folder of manifests, and its admin API. */
async function startApi(
  t: Test,
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
) {
  const folder = makeTextFolder(t);
  for (const [name, text] of Object.entries(files)) folder.write(name, text);
  const app = await startApp(t, { XDS_FOLDER: folder.path, POD_NAME: 'xds-1', ...env });
  const call = (path: string, options?: Parameters<typeof callAdminApi>[2]) =>
    callAdminApi(app.ports.admin, path, options);
  const get = async (path: string) => (await call(path)).json;
  /** Asks until the response matches. */
  const until = async (
    path: string,
    isExpected: (json: Record<string, unknown>) => boolean,
    what: string,
  ) => {
    let json: Record<string, unknown> = {};
    await awaitUntil(
      async () => {
        json = await get(path);
        return isExpected(json);
      },
      { what },
    );
    return json;
  };
  const connect = () => connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  return { folder, app, call, get, until, connect };
}

const ofLimits = '/v1/objects/RateLimitConfig/default/web';

t.test('objects are listed with their conditions, filtered and page by page', async (t) => {
  const { app, get, until } = await startApi(t, {
    'limits.yaml': documents(manifestText('web'), manifestText('bad').replace('Minute', 'Fortnight')),
    'policy.yaml': documents(policyText('open'), policyText('wrong', '{ hosts: [B.test], more: 1 }')),
  });
  const all = await until('/v1/objects', ({ total }) => total === 4, 'all objects');
  t.match(all, {
    replica: 'xds-1',
    objects: [
      { kind: 'AccessPolicy', namespace: 'shop', name: 'open', accepted: true, inForce: 1 },
      { kind: 'AccessPolicy', name: 'wrong', accepted: false, file: 'policy.yaml#2' },
      {
        ...{ kind: 'RateLimitConfig', namespace: 'default', name: 'bad', source: 'folder', accepted: false },
        conditions: [{ type: 'Accepted', status: 'False', reason: 'Invalid', message: /rateLimit\.unit/ }],
      },
      { name: 'web', generation: 1, inForce: 1, domain: 'web', limits: 1 },
    ],
    counts: { AccessPolicy: { total: 2, refused: 1 }, RateLimitConfig: { total: 2, refused: 1 } },
  });
  t.equal(all.next, undefined);
  t.match(await get('/v1/objects?kind=AccessPolicy&accepted=false'), {
    total: 1,
    objects: [{ name: 'wrong' }],
  });
  t.match(await get('/v1/objects?namespace=default&find=we'), { total: 1, objects: [{ name: 'web' }] });
  t.match(await get('/v1/objects?domain=web'), { total: 1, objects: [{ name: 'web' }] });
  const client = createXdsClient({
    url: `http://127.0.0.1:${app.ports.admin}`,
    token: '',
    timeoutMs: 10_000,
  });
  const list = (cursor?: string) =>
    unwrap(client.GET('/v1/objects', { params: { query: { limit: 3, ...(cursor && { cursor }) } } }));
  const first = await list();
  const second = await list(first.next);
  t.equal(second.next, undefined);
  const names = [...first.objects, ...second.objects].map(({ name }) => name);
  t.strictSame(names, ['open', 'wrong', 'bad', 'web']);
});

t.test('an object may have the longest name of the API server', async (t) => {
  const name = 'n'.repeat(253);
  const { until } = await startApi(t, { 'a.yaml': manifestText(name) });
  await until(`/v1/objects/RateLimitConfig/default/${name}`, (json) => json.name === name, 'the object');
});

t.test('an object has its findings, and who has acknowledged what', async (t) => {
  const { folder, get, until, connect } = await startApi(t, { 'web.yaml': manifestText('web', 1) });
  const limiter = connect();
  limiter.send({ node: { id: 'limiter-1' } });
  limiter.ack(await limiter.next());
  const isAcknowledged = ({ acknowledgements }: Record<string, unknown>) =>
    Array.isArray(acknowledgements) && acknowledgements[0]?.acknowledged === 1;
  t.match(await until(ofLimits, isAcknowledged, 'the acknowledgement'), {
    ...{ accepted: true, inForce: 1, findings: [] },
    versions: [{ generation: 1, accepted: true, inForce: true, readAt: String }],
    acknowledgements: [
      {
        ...{ clients: 'limiter', resource: 'web', connected: 1 },
        list: [{ node: 'limiter-1', acknowledged: true, acknowledgedAt: String }],
      },
    ],
  });
  t.match(await get('/v1/clients'), {
    clients: [{ kind: 'limiter', node: 'limiter-1', state: 'current', lagSeconds: 0, protocol: 'sotw' }],
    replicas: [{ replica: 'xds-1', limiters: { connected: 1, current: 1, refusing: 0 } }],
  });
  folder.write('web.yaml', manifestText('web', 2));
  limiter.nack(await limiter.next(), 'web: not this one');
  const refused = await until('/v1/clients?state=refusing', ({ total }) => total === 1, 'the rejection');
  t.match(refused, {
    clients: [{ state: 'refusing', rejection: { message: 'web: not this one', at: String } }],
  });
  t.match(await get('/v1/clients?state=current'), { total: 0, clients: [] });
  t.match(await get(ofLimits), {
    generation: 2,
    acknowledgements: [{ acknowledged: 0, list: [{ acknowledged: false, rejection: { version: String } }] }],
  });
});

t.test('an auth server acknowledges policies, limiters their limits', async (t) => {
  const limits = '{ hosts: [a.test], limits: [{ name: per-user, by: [User], requests: 5, per: Minute }] }';
  const { until, connect } = await startApi(t, { 'a.yaml': policyText('a', limits) });
  const auth = connect();
  auth.send({ typeUrl: accessConfigType, node: { id: 'auth-1' } });
  const limiter = connect();
  limiter.send({ node: { id: 'limiter-1' } });
  limiter.ack(await limiter.next());
  const response = await auth.next();
  auth.ack(response, { typeUrl: accessConfigType });
  // Parsed boundary: the document has checked the response.
  const areCounted = ({ clients }: { clients?: { authServers?: { acknowledged: number } } }) =>
    clients?.authServers?.acknowledged === 1;
  t.match(await until('/v1/objects/AccessPolicy/shop/a', areCounted, 'the acknowledgements'), {
    clients: { authServers: { connected: 1, acknowledged: 1 }, limiters: { connected: 1, acknowledged: 1 } },
    acknowledgements: [
      { clients: 'auth-server', resource: 'shop', list: [{ node: 'auth-1', acknowledged: true }] },
      { clients: 'limiter', resource: 'policy/shop/a', list: [{ node: 'limiter-1', acknowledged: true }] },
    ],
  });
});

t.test('versions of an object are kept, and their manifests can be applied again', async (t) => {
  const { folder, get, until, call } = await startApi(t, { 'web.yaml': manifestText('web', 1) });
  await until(ofLimits, ({ generation }) => generation === 1, 'the first version');
  folder.write('web.yaml', manifestText('web', 2).replace('Minute', 'Fortnight'));
  const refused = await until(ofLimits, ({ accepted }) => accepted === false, 'the refused version');
  t.match(refused, {
    ...{ generation: 2, inForce: 1, manifest: /unit: Fortnight/ },
    findings: [{ severity: 'error', field: 'spec.descriptors[0].rateLimit.unit', message: /Fortnight/ }],
    versions: [
      { generation: 2, accepted: false, inForce: false },
      { generation: 1, accepted: true, inForce: true },
    ],
  });
  const { manifest } = await get(`${ofLimits}/versions/1`);
  const parsed = parse({ text: String(manifest), linesBefore: 0 });
  t.match(parsed.ok && parsed.documents[0]?.value, {
    ...{ apiVersion: 'ratelimit.tollgate.dev/v1alpha1', kind: 'RateLimitConfig' },
    metadata: { name: 'web', namespace: 'default' },
    spec: { domain: 'web', descriptors: [{ key: 'k', rateLimit: { unit: 'Minute', requestsPerUnit: 1 } }] },
  });
  t.match(await call(`${ofLimits}/versions/3`), { status: 404, json: { code: 'version_not_found' } });
  folder.write('web.yaml', String(manifest));
  t.match(await until(ofLimits, ({ accepted }) => accepted === true, 'the applied version'), {
    ...{ generation: 3, inForce: 3 },
    versions: { length: 3 },
  });
});

t.test('the version in force from before a restart is among the versions', async (t) => {
  const data = join(makeTextFolder(t).path, 'data');
  const files = makeTextFolder(t);
  files.write('web.yaml', manifestText('web', 1));
  const env = { XDS_FOLDER: files.path, XDS_DATA_FOLDER: data };
  const first = await startApi(t, {}, env);
  await first.until(ofLimits, ({ inForce }) => inForce === 1, 'the first version');
  await awaitUntil(() => readdirSync(data).length === 1, { what: 'the stored version' });
  await first.app.lifecycle.stop('test');
  files.write('web.yaml', manifestText('web', 2).replace('Minute', 'Fortnight'));
  const { get, until } = await startApi(t, {}, env);
  t.match(await until(ofLimits, ({ accepted }) => accepted === false, 'the refused version'), {
    versions: [
      { generation: 1, accepted: false },
      { generation: 0, accepted: true, inForce: true },
    ],
  });
  t.match(await get(`${ofLimits}/versions/0`), { manifest: /requestsPerUnit: 1\n/ });
});

t.test('the status has the source, what is served and what is held back', async (t) => {
  const { folder, until } = await startApi(t, {
    'web.yaml': manifestText('web'),
    'broken.yaml': 'a: [',
  });
  t.match(await until('/v1/status', ({ ready }) => ready === true, 'the service to be ready'), {
    replica: 'xds-1',
    source: { type: 'folder', problems: [{ source: /^broken\.yaml/ }] },
    limits: { version: String, since: String, domains: 1, limits: 1 },
    heldDeletions: [],
  });
  rmSync(join(folder.path, 'web.yaml'));
  const isHeld = ({ heldDeletions }: Record<string, unknown>) =>
    Array.isArray(heldDeletions) && heldDeletions.length === 1;
  t.match(await until('/v1/status', isHeld, 'the held deletion'), {
    heldDeletions: [{ kind: 'RateLimitConfig', objects: 1, command: /^touch / }],
  });
});

t.test('manifests are evaluated against what is live, and nothing is stored', async (t) => {
  const { call, until, get } = await startApi(t, {
    'web.yaml': manifestText('web', 1),
    'open.yaml': policyText('open'),
  });
  await until('/v1/objects', ({ total }) => total === 2, 'all objects');
  const manifests = documents(
    manifestText('web', 2),
    manifestText('bad').replace('Minute', 'Fortnight'),
    policyText('open', '{ hosts: [open.test], more: 1 }'),
    policyText('new'),
    'kind: Secret\n',
  );
  const { json } = await call('/v1/validate', { body: { manifests } });
  t.match(json, {
    accepted: false,
    problems: [{ line: 29, column: 1, message: /kind: Secret is not read/ }],
    objects: [
      {
        ...{ kind: 'RateLimitConfig', name: 'web', exists: true, inForce: 1, accepted: true, findings: [] },
        changes: [{ field: 'spec.descriptors[0].rateLimit.requestsPerUnit', before: 1, after: 2 }],
      },
      {
        ...{ name: 'bad', exists: false, accepted: false, changes: [{ field: 'spec', after: {} }] },
        conditions: [{ type: 'Accepted', status: 'False', reason: 'Invalid', message: /Fortnight/ }],
        findings: [{ severity: 'error', field: 'spec.descriptors[0].rateLimit.unit', line: 17, column: 20 }],
      },
      { kind: 'AccessPolicy', name: 'open', accepted: false, findings: [{ field: 'spec.more', line: 22 }] },
      { name: 'new', namespace: 'shop', exists: false, accepted: true },
    ],
  });
  t.match(await get('/v1/objects'), { total: 2 });
  t.match(await get(ofLimits), { generation: 1, versions: { length: 1 } });
});

t.test('a conflict with a live object is found, also one that other objects may end', async (t) => {
  const { call, until } = await startApi(t, {
    'web.yaml': manifestText('web', 1, 'one'),
    'open.yaml': policyText('open'),
  });
  await until('/v1/objects', ({ total }) => total === 2, 'all objects');
  const manifests = documents(
    manifestText('web', 1, 'two'),
    policyText('other', '{ hosts: [open.test] }').replace('shop', 'web'),
  );
  t.match((await call('/v1/validate', { body: { manifests } })).json, {
    objects: [
      { conditions: [{ reason: 'DomainConflict' }], findings: [{ field: 'spec.domain', line: 5 }] },
      { conditions: [{ status: 'False', reason: 'Conflicted' }], findings: [{ severity: 'error' }] },
    ],
  });
});

t.test('a text that is no YAML, and values that kubectl reads differently, are refused', async (t) => {
  const { call } = await startApi(t, {});
  const validate = async (manifests: string) => (await call('/v1/validate', { body: { manifests } })).json;
  t.match(await validate('a: ['), { accepted: false, problems: [{ line: Number }], objects: [] });
  t.match(await validate(manifestText('web').replace('10', '0100')), {
    objects: [{ accepted: false, findings: [{ line: 8, message: /64 for kubectl/ }] }],
  });
  const many = documents(...Array.from({ length: 101 }, (_, i) => manifestText(`o${i}`)));
  t.match(await validate(many), { objects: { length: 100 }, problems: [{ message: /more than 100/ }] });
  t.match(await call('/v1/validate', { body: {} }), { status: 400, json: { code: 'invalid_request' } });
  t.match(await call('/v1/validate', { body: { manifests: 'x'.repeat(3_000_000) } }), {
    ...{ status: 413, json: { code: 'body_too_large' } },
  });
});

/** The endpoint of the auth server, which is another service, with the replies of its contract. */
async function startVerifier(t: Test, scopes: Readonly<Record<string, readonly string[]>>) {
  const server = createServer(async (request, response) => {
    const { credential } = JSON.parse(await text(request));
    if (credential === 'tgk_broken') response.statusCode = 500;
    const admin_scopes = scopes[credential];
    const administrator = { kind: 'api_key', id: 'an id', name: 'dashboard', admin_scopes };
    response.end(
      JSON.stringify(
        admin_scopes === undefined
          ? { valid: false, code: 'invalid_api_key' }
          : { valid: true, code: 'ok', administrator },
      ),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return `http://127.0.0.1:${port}`;
}

t.test('settings in force are listed without secrets, with the warnings of the start', async (t) => {
  const canary = 'canary-of-the-test';
  const { call } = await startApi(t, {}, { XDS_DEBOUNCE: '20ms', XDS_ADMIN_TOKEN: canary });
  const { json } = await call('/v1/settings', { headers: { authorization: `Bearer ${canary}` } });
  t.notMatch(JSON.stringify(json), canary);
  t.match(json, {
    service: 'xds',
    version: '0.0.0',
    warnings: [{ level: 'warning', message: /without TLS/, details: { host: '127.0.0.1' } }],
  });
  const settings = json.settings as readonly Readonly<Record<string, unknown>>[]; // as documented
  const find = (name: string) => settings.find((setting) => setting.name === name);
  t.match(find('XDS_DEBOUNCE'), { value: '20ms', changed: true, source: 'environment' });
  t.match(find('XDS_ADMIN_TOKEN'), { secret: true, set: true, value: undefined });
});

t.test('credentials of the auth server need the admin scope of the request', async (t) => {
  const url = await startVerifier(t, {
    ...{ tgk_reader: ['policies:read'], tgk_settings: ['settings:read'], tgk_other: ['users:write'] },
  });
  const keys = { XDS_ADMIN_KEYS_URL: url, XDS_ADMIN_KEYS_TOKEN: 'tgk_verifier' };
  const adminToken = 'a-token-of-the-operator';
  const { call } = await startApi(t, {}, { ...keys, XDS_ADMIN_TOKEN: adminToken });
  const open = await startApi(t, {}, keys);
  const ask = async (token: string, by = call, path = '/v1/status') => {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    const { status, json } = await by(path, { headers });
    return [status, json.code];
  };
  t.strictSame(await ask('tgk_reader'), [200, undefined]);
  t.strictSame(await ask(adminToken), [200, undefined]);
  t.strictSame(await ask('tgk_other'), [403, 'right_missing']);
  t.strictSame(await ask('tgk_settings'), [403, 'right_missing']);
  t.strictSame(await ask('tgk_settings', call, '/v1/settings'), [200, undefined]);
  t.strictSame(await ask('tgk_reader', call, '/v1/settings'), [403, 'right_missing']);
  t.strictSame(await ask('tgk_wrong'), [401, 'caller_not_authenticated']);
  t.strictSame(await ask(''), [401, 'caller_not_authenticated']);
  t.strictSame(await ask('tgk_broken'), [503, 'keys_unavailable']);
  t.strictSame(await ask('', open.call), [401, 'caller_not_authenticated'], 'on loopback, too');
  t.strictSame(await ask('tgk_reader', open.call), [200, undefined]);
  const page = await fetch(`http://127.0.0.1:${open.app.ports.admin}/`, {
    headers: { authorization: 'Bearer tgk_wrong' },
  });
  t.equal(page.status, 200, 'pages are for clients on loopback as before');
});

t.test('invalid requests are refused with the reason', async (t) => {
  const { call } = await startApi(t, {});
  for (const [path, status, code, message] of [
    ['/v1/objects?limit=0', 400, 'invalid_request', /limit must be >= 1/],
    ['/v1/objects?limits=1', 400, 'invalid_request', /additional properties/],
    ['/v1/objects?cursor=%21', 400, 'invalid_cursor', /next/],
    ['/v1/objects/Secret/a/b', 400, 'invalid_request', /kind must be equal to one of/],
    ['/v1/objects/AccessPolicy/a/b', 404, 'object_not_found', /no AccessPolicy a\/b/],
    ['/v1/nothing', 404, 'path_not_found', /no such path/],
  ] as const)
    t.match(await call(path), { status, json: { code, message } }, path);
});
