import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import { runOperatorCommand } from '../helpers/run-command.ts';

t.test('webhooks commands add, test, rotate, list and remove an endpoint', async (t) => {
  const server = await startAuthServer(t);
  const hook = await startHookServer(t);
  const variables = { SVC_EVENT_WEBHOOKS_ENABLED: 'true', SVC_EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1' };
  const run = (...args: string[]) =>
    runOperatorCommand(server.databaseUrl, ['webhooks', ...args], '', variables);

  const added = await run('add', 'crm', hook.url, '--events', 'user.created, user.deleted');
  t.match(added, { exitCode: 0, errors: '', output: /^v1,whsec_/ });
  t.match(await run('add', 'crm', hook.url), { exitCode: 1, errors: /name crm exists/ });
  t.match(await run('test', 'crm'), { exitCode: 0, output: 'crm accepted the test\n' });
  hook.answer({ status: 503 });
  t.match(await run('test', 'crm'), { exitCode: 1, errors: /the response has status 503/ });
  const rotated = await run('rotate', 'crm', '--grace', '1h');
  t.match(rotated, { exitCode: 0, output: /^v1,whsec_/ });
  t.not(rotated.output, added.output);
  t.match(await run('list'), { exitCode: 0, output: /crm .*user\.created,user\.deleted +active +-/ });
  t.match(await run('remove', 'crm'), { exitCode: 0, output: /^crm is removed/ });
  t.match(await run('remove', 'crm'), { exitCode: 1, errors: 'webhook not found: crm\n' });

  const { text: log } = await server.call('GET', '/admin/audit?kind=command_line', { token: adminToken() });
  for (const action of ['webhook_created', 'webhook_secret_rotated', 'webhook_deleted'])
    t.match(log, `"action":"${action}"`);
});

t.test('webhooks commands name the setting that enables webhooks', async (t) => {
  const server = await startAuthServer(t);
  const listed = await runOperatorCommand(server.databaseUrl, ['webhooks', 'list']);
  t.match(listed, { exitCode: 1, errors: /SVC_EVENT_WEBHOOKS_ENABLED/ });
});
