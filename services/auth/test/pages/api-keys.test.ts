import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { checkKey, createKeyOf, startKeyServer } from '../helpers/api-keys.ts';
import { Browser } from '../helpers/browser.ts';
import { apiUrl } from '../helpers/provider-sign-in.ts';

const pages = `${apiUrl}/pages`;
const ada = { email: 'ada@example.com', password: 'correct horse' };

function start(test: Test, variables: Readonly<Record<string, string>> = {}) {
  return startKeyServer(test, { PAGES_ENABLED: 'true', API_KEYS_SELF_SERVICE: 'true', ...variables });
}

t.test('a user creates, replaces and revokes a key in the account area', async (t) => {
  const server = await start(t, { API_KEYS_PER_USER: '1' });
  await server.call('POST', '/admin/users', {
    token: adminToken(),
    body: { ...ada, email_confirm: true },
  });
  const browser = new Browser({ [apiUrl]: server.url });
  await browser.submit(`${pages}/sign-in`, { identifier: ada.email, password: ada.password });
  const text = async (name: string) => (await browser.open(`${pages}/${name}`)).text();
  const submit = (name: string, fields: Record<string, string>, target = name) =>
    browser.submit(`${pages}/${name}`, fields, { target });
  const keyIn = (page: string) => /<code>(tgk_\w+)<\/code>/.exec(page)?.[1] ?? '';
  t.match(await text('api-keys'), 'An API key lets a program use your account.');

  const created = await (await submit('api-key', { name: 'Laptop <1>' })).text();
  t.match(created, 'It is not shown again.');
  const key = keyIn(created);
  t.match(await checkKey(server, { 'x-api-key': key }), { status: 200 });
  const list = await text('api-keys');
  t.match(list, `Laptop &lt;1&gt;`);
  t.match(list, `<code>tgk_…${key.slice(-4)}</code>, never used`);
  t.notMatch(list, key);
  const full = await submit('api-key', { name: 'Another' });
  t.equal(full.status, 422);
  t.match(await full.text(), 'You have the maximum number of API keys.');

  server.clock.advance(1_000);
  const [, rotation = ''] = /href="\/pages\/(api-key\?rotate=[^"]+)"/.exec(list) ?? [];
  t.match(await text(rotation), 'The key “Laptop &lt;1&gt;” stays valid for 24 hours.');
  const replaced = keyIn(await (await submit(rotation, {}, 'api-key')).text());
  t.not(replaced, key);
  for (const one of [key, replaced]) t.match(await checkKey(server, { 'x-api-key': one }), { status: 200 });

  const revoked = await submit('api-keys', {}, 'api-key-revoke');
  t.equal(revoked.headers.get('location'), '/pages/api-keys?saved=api-key');
  t.match(await text('api-keys?saved=api-key'), 'The API key is revoked.');
  t.match(await checkKey(server, { 'x-api-key': replaced }), { status: 401 }, 'the newest one is the first');

  const { id } = await createKeyOf(server);
  const foreign = await submit('api-keys', { key_id: id }, 'api-key-revoke');
  t.equal(foreign.status, 404, 'the key of another owner');
  t.equal((await browser.open(`${pages}/api-key?rotate=${id}`)).status, 404);
});

t.test('without self-service the account area has no keys', async (t) => {
  const server = await start(t, { API_KEYS_SELF_SERVICE: 'false' });
  await server.call('POST', '/admin/users', {
    token: adminToken(),
    body: { ...ada, email_confirm: true },
  });
  const browser = new Browser({ [apiUrl]: server.url });
  await browser.submit(`${pages}/sign-in`, { identifier: ada.email, password: ada.password });
  t.notMatch(await (await browser.open(`${pages}/account`)).text(), 'api-key');
  for (const name of ['api-keys', 'api-key']) t.equal((await browser.open(`${pages}/${name}`)).status, 404);
});
