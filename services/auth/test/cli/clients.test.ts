import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { checkRequest, machineToken, oauthServer, requestToken } from '../helpers/oauth-clients.ts';
import { runOperatorCommand } from '../helpers/run-command.ts';

t.test('clients commands manage machine clients, and are in the audit log', async (t) => {
  const server = await startAuthServer(t, oauthServer);
  const run = (...args: string[]) => runOperatorCommand(server.databaseUrl, ['clients', ...args]);
  const options = ['--scopes', 'orders:read,stock', '--plan', 'pro', '--audiences', 'https://orders.example'];
  const created = await run('create', 'reports', ...options);
  t.match(created, { exitCode: 0, output: /^CLIENT_ID=[0-9a-f-]{36}\nCLIENT_SECRET=[\w-]{43}\n$/ });
  t.match(created.errors, /OAUTH_SERVER_ENABLED is not true/, 'of the command');
  const [, id = '', secret = ''] = /=(\S+)\n.*=(\S+)/.exec(created.output) ?? [];
  const token = await machineToken(server, { client_id: id, client_secret: secret });
  t.equal((await checkRequest(server, token)).headers.get('x-auth-plan'), 'pro');

  const listed = await run('list');
  t.match(listed.output, /reports +client_credentials +orders:read,stock +pro .* active/);
  t.match(JSON.parse((await run('list', '--json')).output), {
    client_id: id,
    audiences: ['https://orders.example'],
    client_secret: undefined,
  });

  const rotated = await run('rotate-secret', id);
  t.match(rotated, { exitCode: 0, errors: '', output: `CLIENT_ID=${id}\nCLIENT_SECRET=` });
  await awaitUntil(async () => (await checkRequest(server, token)).status === 401, {
    what: 'the end of the token',
  });
  const old = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
  t.equal((await requestToken(server, old)).status, 401);
  t.match(await run('delete', id), {
    exitCode: 0,
    output: 'reports is deleted, and its tokens have ended\n',
  });
  t.match(await run('delete', id), { exitCode: 1, errors: 'OAuth client not found\n' });
  t.match(await run('delete', 'reports'), { exitCode: 1, errors: 'not the id of a client: reports\n' });
  t.match(await run('create', 'x', '--role', 'service_role'), { exitCode: 1, errors: /no administrators/ });

  const signing = await run('create', 'signing', '--jwks-uri', 'https://reports.example/jwks.json');
  t.match(signing, { exitCode: 0, output: /^CLIENT_ID=\S+\n$/ });
  const { text: log } = await server.call('GET', '/admin/audit?kind=command_line', { token: adminToken() });
  for (const action of ['created', 'secret_regenerated', 'deleted'])
    t.match(log, `"action":"oauth_client_${action}"`);
});
