import t from 'tap';
import { helpText } from '../../src/cli/help.ts';
import { commands } from '../../src/cli/run-command.ts';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { runOperatorCommand } from '../helpers/run-command.ts';

t.test('users commands act on the user and are in the audit log', async (t) => {
  const server = await startAuthServer(t);
  const { call, databaseUrl } = server;
  const ada = await signUp(server);
  const { accessToken } = await signUp(server, { email: 'bob@example.com' });
  const run = (...args: string[]) => runOperatorCommand(databaseUrl, ['users', ...args]);
  const signIn = (password: string) =>
    call('POST', '/token?grant_type=password', { body: { email: 'ada@example.com', password } });

  t.match(await run('plan', 'ada@example.com', 'gold'), { exitCode: 0, output: /has the plan gold/ });

  const banned = await run('ban', 'Ada@example.com', '--for', '24h');
  t.match(banned, { exitCode: 0, errors: '', output: `${ada.userId} is banned until ` });
  t.match(await signIn('correct horse'), { status: 400, body: { error_code: 'user_banned' } });
  const listed = await run('list', '--plan', 'gold', '--banned', 'true');
  t.match(listed, { exitCode: 0, errors: '', output: /ada@example.com.* gold .* banned until / });
  t.notMatch(listed.output, /bob@/);
  t.match(await run('unban', 'ada@example.com'), { exitCode: 0 });

  const page = await run('list', '--limit', '1', '--json');
  const first = JSON.parse(page.output).email;
  const [, cursor = ''] = /--cursor (\S+)/.exec(page.errors) ?? [];
  const rest = await run('list', '--cursor', cursor);
  t.match(rest, { exitCode: 0, errors: '', output: first === 'ada@example.com' ? /bob@/ : /ada@/ });

  const changed = await runOperatorCommand(
    databaseUrl,
    ['users', 'set-password', 'ada@example.com'],
    'battery staple\n',
  );
  t.match(changed, { exitCode: 0, errors: '' });
  const session = await signIn('battery staple');
  t.equal(session.status, 200);
  t.match(await run('sign-out', 'ada@example.com'), { exitCode: 0 });
  const refresh = { body: { refresh_token: session.body.refresh_token } };
  t.equal((await call('POST', '/token?grant_type=refresh_token', refresh)).status, 400);

  await call('POST', '/factors', {
    token: accessToken,
    body: { factor_type: 'totp', friendly_name: 'phone' },
  });
  t.match(await run('reset-factor', 'bob@example.com'), { exitCode: 0, output: /removed from .*: totp/ });
  const { output } = await run('get', 'bob@example.com');
  t.match(JSON.parse(output), { email: 'bob@example.com', factors: undefined });

  const { text: log } = await call('GET', '/admin/audit?query=author:command%20line', {
    token: adminToken(),
  });
  for (const action of ['user_modified', 'user_updated_password', 'logout', 'factor_deleted'])
    t.match(log, `"action":"${action}"`);
});

t.test('each command has a help of its own', (t) => {
  for (const name of Object.keys(commands)) t.match(helpText(commands, name), `tollgate-auth ${name}`);
  t.match(helpText(commands, 'users list'), /--created-from <text> +Created at or after/);
  t.notMatch(helpText(commands, 'users get'), /--plan/, 'only its own flags');
  t.match(helpText(commands, 'users'), /users set-password <email, phone or id>/);
  t.notMatch(helpText(commands, 'users'), /signing-keys/);
  t.match(helpText(commands, ''), /signing-keys rotate/);
  t.end();
});
