import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { startAuthServer } from '../helpers/auth-server.ts';

const token = adminToken();

t.test('names in admin requests', async (t) => {
  const server = await startAuthServer(t);
  const send = (method: string, path: string, body?: object) =>
    server.call(method, path, { token, ...(body && { body }) });
  const created = await send('POST', '/admin/users', { email: 'ada@example.com' });
  const path = `/admin/users/${created.body.id}`;

  await t.test('misspelled members and parameters are rejected with the name that was meant', async (t) => {
    const misspelled = {
      banDuration: 'ban_duration',
      'Ban-Duration': 'ban_duration',
      ban_durations: 'ban_duration',
      rol: 'role',
      userMetadata: 'user_metadata',
      email_confirmed: 'email_confirm',
    };
    for (const [name, meant] of Object.entries(misspelled)) {
      const answer = await send('PUT', path, { [name]: '24h', phone: '491511234' });
      const msg = `unknown body member "${name}": did you mean ${meant}?`;
      t.match(answer, { status: 400, body: { error_code: 'validation_failed', msg } });
    }
    t.match((await send('GET', path)).body, { phone: '', banned_until: undefined }, 'unchanged');
    const others = [
      ['DELETE', path, { shouldSoftDelete: true }, 'should_soft_delete'],
      ['POST', '/invite?redirectTo=https://example.com', { email: 'bob@example.com' }, 'redirect_to'],
      ['POST', '/admin/users/import?dryrun=true', undefined, 'dry_run'],
      ['POST', '/admin/custom-providers', { clientId: 'x' }, 'client_id'],
    ] as const;
    for (const [method, target, body, meant] of others) {
      const answer = await send(method, target, body);
      t.match(answer, { status: 400, body: { msg: new RegExp(`did you mean ${meant}`) } }, target);
    }
    t.equal((await send('GET', path)).status, 200, 'not deleted');
  });

  await t.test('unknown parameters of lists are rejected', async (t) => {
    const lists = ['/admin/users', '/admin/audit', '/admin/custom-providers', '/admin/events/failed'];
    for (const list of lists) {
      const answer = await send('GET', `${list}?tenant=acme`);
      t.match(answer, { status: 400, body: { msg: /^unknown query parameter "tenant": known are / } }, list);
      t.equal((await send('GET', `${list}?apikey=key`)).status, 200, 'key of an API gateway');
    }
    t.match(await send('GET', '/admin/users?e-mail=a'), { body: { msg: /did you mean email/ } });
  });

  await t.test('other unknown names are ignored and logged once', async (t) => {
    const { body: user } = await send('GET', path);
    for (let times = 1; times <= 2; times++)
      t.equal((await send('PUT', path, { ...user, favorite: 'blue' })).status, 200, 'a user as it was read');
    t.equal((await send('GET', `${path}?tenant=acme`)).status, 200);
    const logged = server
      .logs()
      .split('\n')
      .filter((line) => line.includes('ignoring unknown name'));
    const names = logged.map((line) => JSON.parse(line).name);
    t.equal(names.filter((name) => name === 'favorite').length, 1);
    t.ok(names.includes('tenant'));
    for (let index = 0; index < 50; index++) {
      const many = Object.fromEntries(
        Array.from({ length: 10 }, (_, n) => [`unknown${index}x${n}x${index}`, 1]),
      );
      await send('PUT', path, many);
    }
    t.equal(server.logs().split('ignoring unknown name').length - 1, 200, 'bounded');
  });

  await t.test('requests of auth-js are accepted', async (t) => {
    const link = { type: 'magiclink', email: 'ada@example.com', redirectTo: 'https://example.com' };
    t.equal((await send('POST', '/admin/generate_link?redirect_to=https://example.com', link)).status, 200);
  });

  await t.test('names are not checked before the caller is authenticated', async (t) => {
    t.equal((await server.call('PUT', path, { body: { banDuration: '24h' } })).status, 401);
  });
});
