import t from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';
import { signUpAs, withOrganizations } from '../helpers/organizations.ts';
import { runOperatorCommand } from '../helpers/run-command.ts';

t.test('orgs commands act on organizations and their members', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  const run = (...args: string[]) => runOperatorCommand(server.databaseUrl, ['orgs', ...args]);

  const created = await run('create', 'Acme', '--owner', 'ada@example.com', '--plan', 'pro');
  t.match(created, { exitCode: 0, errors: '' });
  const id = created.output.trim();
  t.match(await run('set', 'acme', '--limit', '100/minute'), {
    exitCode: 0,
    output: /"requests_per_unit": 100/,
  });
  t.match(await run('set', 'acme', '--limit', 'many'), { exitCode: 1, errors: /such as 100\/minute/ });
  t.match(await run('put-member', 'acme', 'bob@example.com', '--role', 'admin'), {
    exitCode: 0,
    output: `${bob.userId} is admin of acme`,
  });
  const { output } = await run('get', id);
  t.match(JSON.parse(output), {
    ...{ id, plan: 'pro', limit: { requests_per_unit: 100, unit: 'minute' } },
    members: [
      { user_id: ada.userId, role: 'owner' },
      { user_id: bob.userId, role: 'admin' },
    ],
  });
  t.match(await run('list', '--plan', 'pro'), { exitCode: 0, output: new RegExp(`${id} +acme +Acme +pro`) });
  t.notMatch((await run('list', '--without-owner')).output, id);
  t.match(await run('remove-member', 'acme', 'ada@example.com'), { exitCode: 1, errors: /last owner/ });
  t.match(await run('remove-member', 'acme', 'bob@example.com'), { exitCode: 0 });
  t.match(await run('delete', 'acme'), { exitCode: 0, output: `${id} is deleted` });
  t.match(await run('get', 'acme'), { exitCode: 1, errors: 'organization not found: acme' });
});
