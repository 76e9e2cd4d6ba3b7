import t from 'tap';
import { isAtMost, keyRoleOf } from '../../src/api-keys/role.ts';
import { adminToken } from '../helpers/admin.ts';
import { administerKeys, checkKey, createKeyOf, startKeyServer } from '../helpers/api-keys.ts';
import { signUp } from '../helpers/auth-server.ts';

const order = ['viewer', 'editor', 'admin'];

t.test('the role of a key is at most that of its owner', (t) => {
  t.equal(keyRoleOf('viewer', 'editor', order), 'viewer');
  t.equal(keyRoleOf('admin', 'editor', order), 'editor');
  t.equal(keyRoleOf(undefined, 'editor', order), 'editor');
  t.equal(keyRoleOf('viewer', 'editor', []), 'editor', 'without an order no role is lower');
  t.equal(keyRoleOf('other', 'editor', order), 'editor');
  t.equal(keyRoleOf('viewer', 'other', order), 'other');
  t.equal(keyRoleOf('robot', undefined, order), 'robot', 'a machine');
  t.equal(keyRoleOf(undefined, undefined, order), '');
  t.ok(isAtMost('other', 'other', []));
  t.end();
});

t.test('a role above that of the owner is rejected, and a demotion of the owner counts', async (t) => {
  const server = await startKeyServer(t, { API_KEYS_ROLES: order.join(',') });
  const ada = await signUp(server);
  const setRole = (role: string) =>
    server.call('PUT', `/admin/users/${ada.userId}`, { token: adminToken(), body: { role } });
  await setRole('editor');
  const owner = { user_id: ada.userId };
  t.match(await administerKeys(server, 'POST', '', { name: 'x', owner, role: 'admin' }), {
    status: 400,
    body: { error_code: 'validation_failed', msg: /SVC_API_KEYS_ROLES/ },
  });
  const { id, key } = await createKeyOf(server, { owner, role: 'editor' });
  t.match(await administerKeys(server, 'PUT', `/${id}`, { role: 'admin' }), { status: 400 });
  const role = async () => (await checkKey(server, { 'x-api-key': key })).headers.get('x-auth-role');
  t.equal(await role(), 'editor');
  await setRole('viewer');
  t.equal(await role(), 'viewer');
});
