import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { addOrganization, checkKey, startKeyServer } from '../helpers/api-keys.ts';
import { signUp } from '../helpers/auth-server.ts';
import { runOperatorCommand } from '../helpers/run-command.ts';

t.test('api-keys commands create, list, rotate and revoke a key', async (t) => {
  const server = await startKeyServer(t);
  await signUp(server);
  const run = (...args: string[]) =>
    runOperatorCommand(server.databaseUrl, ['api-keys', ...args], '', { SVC_API_KEYS_ENABLED: 'true' });
  const created = await run(
    ...[
      'create',
      'laptop',
      '--user',
      'ada@example.com',
      '--plan',
      'pro',
      '--scopes',
      'read, write',
      '--for',
      '24h',
    ],
  );
  t.match(created, { exitCode: 0, errors: '', output: /^tgk_[0-9A-Za-z]{49}\n$/ });
  const check = (output: string) => checkKey(server, { 'x-api-key': output.trim() });
  t.match(Object.fromEntries((await check(created.output)).headers), {
    'x-auth-plan': 'pro',
    'x-auth-scope': 'read%20write',
  });
  t.match(await run('list', '--user', 'ada@example.com'), {
    output: /laptop +tgk_….{4} +user [0-9a-f-]+ +pro .* expires /,
  });
  t.match(await run('list', '--plan', 'other'), { exitCode: 0, output: /^ID .*STATE\n$/ });
  const { output } = await run('list', '--json');
  const { id } = JSON.parse(output);
  const rotated = await run('rotate', id, '--grace', '1h');
  t.match(rotated, { exitCode: 0, output: /^tgk_/ });
  for (const key of [created.output, rotated.output]) t.match(await check(key), { status: 200 });
  t.match(await run('revoke', id), { exitCode: 0, output: /^laptop \(tgk_….{4}\) is revoked\n$/ });
  t.match(await run('revoke', id), { exitCode: 1, errors: /API key not found/ });
  t.match(await run('revoke', 'laptop'), { exitCode: 1, errors: /API key not found/ });
  const { text: log } = await server.call('GET', '/admin/audit?kind=command_line', { token: adminToken() });
  for (const action of ['api_key_created', 'api_key_rotated', 'api_key_revoked'])
    t.match(log, `"action":"${action}"`);
  const org = await addOrganization(server, 'team');
  const ofOrg = await run('create', 'shared', '--org', org);
  t.equal((await check(ofOrg.output)).headers.get('x-auth-plan'), 'team');
  t.match(await run('create', 'x', '--org', org, '--user', 'ada@example.com'), { exitCode: 1 });
});

t.test('api-keys commands name the setting that enables keys', async (t) => {
  const server = await startKeyServer(t);
  t.match(await runOperatorCommand(server.databaseUrl, ['api-keys', 'list']), {
    exitCode: 1,
    errors: /SVC_API_KEYS_ENABLED/,
  });
});
