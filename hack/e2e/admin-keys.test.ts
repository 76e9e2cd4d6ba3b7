import { join } from 'node:path';
import { serviceKey } from '@tollgate/kit/service-key';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { authServerSecret, startRateLimitService, startXdsServer } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import { manifest } from './support/limits.ts';
import { startAuth, startAuthDatabase } from './support/processes.ts';
import { sendJson } from './support/requests.ts';

const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }]';

t.test('credentials of the auth server administer other services as their scopes say', async (t) => {
  const auth = await startAuth(t, await startAuthDatabase(t), { SVC_API_KEYS_ENABLED: 'true' });
  const keysUrl = `${auth.url}/admin/api-keys`;
  const token = serviceKey(authServerSecret);
  const newKey = async (name: string, scope: string) => {
    const body = { name, admin_scopes: [scope] };
    const { status, text } = await sendJson(keysUrl, { method: 'POST', token, body });
    if (status !== 201) throw new Error(text);
    return JSON.parse(text) as { readonly id: string; readonly key: string }; // a created key
  };
  const verifier = await newKey('limiter', 'keys:verify');
  const reader = await newKey('dashboard', 'limits:read');
  const folder = makeTextFolder(t);
  folder.write('config/shop.yaml', rules);
  const port = await freePort();
  const limiter = await startRateLimitService({
    RUNTIME_ROOT: folder.path,
    RUNTIME_SUBDIRECTORY: '',
    ADMIN_PORT: String(port),
    ADMIN_KEYS_URL: auth.url,
    ADMIN_KEYS_TOKEN: verifier.key,
  });
  t.teardown(limiter.stop);
  const call = async (path: string, key: string) => {
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }] };
    const url = `http://127.0.0.1:${port}/v1/counters/${path}`;
    const { status, text } = await sendJson(url, { method: 'POST', token: key, body });
    return { status, body: JSON.parse(text) as object };
  };
  t.match(await call('peek', reader.key), { status: 200, body: { domain: 'shop' } });
  t.match(await call('reset', reader.key), {
    status: 403,
    body: { message: 'the token dashboard lacks the right write' },
  });
  const writer = await newKey('support', 'limits:write');
  t.match(await call('reset', writer.key), { status: 200 });
  t.match(await call('reset', `${writer.key}x`), { status: 401 });

  const { userId } = await auth.signUp('ada@example.com');
  await auth.change(userId, { role: 'service_role' });
  const password = { email: 'ada@example.com', password: 'correct horse battery' };
  const signedIn = await sendJson(`${auth.url}/token?grant_type=password`, {
    method: 'POST',
    body: password,
  });
  const { access_token: person } = JSON.parse(signedIn.text) as { readonly access_token: string };
  t.match(await call('reset', person), { status: 200 });
  await awaitUntil(() => /caller\W+ada@example\.com/.test(limiter.logs()), { what: 'the audit line' });

  const console = await newKey('console', 'policies:read');
  folder.write('manifests/web.json', manifest({ name: 'web', domain: 'shop', limits: { user: 2 } }));
  const xds = await startXdsServer({
    XDS_FOLDER: join(folder.path, 'manifests'),
    XDS_ADMIN_KEYS_URL: auth.url,
    XDS_ADMIN_KEYS_TOKEN: verifier.key,
  });
  t.teardown(xds.stop);
  const askXds = async (credential: string) =>
    (await sendJson(`${xds.adminUrl}/v1/status`, { method: 'GET', token: credential })).status;
  t.equal(await askXds(console.key), 200);
  t.equal(await askXds(person), 200);
  t.equal(await askXds(reader.key), 403);
  t.equal(await askXds(`${reader.key}x`), 401);

  await auth.signOut(person);
  const refused = async () => (await call('peek', person)).status === 401;
  await awaitUntil(refused, { what: 'the refusal after five seconds' });
});
