import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { findBinary } from '@tollgate/testkit/processes';
import t, { type Test } from 'tap';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { operatorEnvironment, program } from '../helpers/run-command.ts';

const enter = '\r';
const backspace = '\x7f';
const controlC = '\x03';
const controlD = '\x04';

/**
 * Runs a command in a pseudo-terminal, which echoes what is typed unless the command prevents it.
 */
function runInTerminal(t: Test, databaseUrl: string, args: readonly string[]) {
  const command = `trap : INT; stty -g; ${process.execPath} ${program} ${args.join(' ')}; echo "exit $?"; stty -g`;
  const child = spawn(findBinary('script'), ['-q', '-f', '-c', command, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', LOG_LEVEL: 'debug', ...operatorEnvironment(databaseUrl) },
  });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  let shown = '';
  let answeredTo = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  return {
    async answer(prompt: string, keys: string): Promise<void> {
      await awaitUntil(() => shown.includes(prompt, answeredTo), { what: `the prompt ${prompt}` });
      answeredTo = shown.indexOf(prompt, answeredTo) + prompt.length;
      child.stdin.write(keys);
    },
    async end() {
      await ended;
      const lines = shown.trimEnd().split('\r\n');
      const [, exitCode] = /^exit (\d+)$/.exec(lines.at(-2) ?? '') ?? [];
      const [before, after] = [lines[0], lines.at(-1)];
      return {
        exitCode: Number(exitCode),
        shown,
        isRestored: /^[0-9a-f:]+$/.test(`${after}`) && after === before,
      };
    },
  };
}

t.test('a terminal prompts for passwords', { skip: process.platform !== 'linux' }, async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  const setPassword = (t: Test) =>
    runInTerminal(t, server.databaseUrl, ['users', 'set-password', 'ada@example.com']);
  const signIn = async (password: string, email = 'ada@example.com') =>
    (await server.call('POST', '/token?grant_type=password', { body: { email, password } })).status;

  await t.test('a password is not shown, and entered again if it was repeated wrongly', async (t) => {
    const terminal = setPassword(t);
    await terminal.answer('Password: ', `first attempt${enter}`);
    await terminal.answer('Repeat the password: ', `another one${enter}`);
    await terminal.answer(
      'The passwords are different.\r\nPassword: ',
      `battery staple_${backspace}${enter}`,
    );
    await terminal.answer('Repeat the password: ', `battery staple${enter}`);
    const { exitCode, shown, isRestored } = await terminal.end();
    t.same({ exitCode, isRestored }, { exitCode: 0, isRestored: true }, shown);
    t.notMatch(shown, /attempt|another|batter|staple|\*/);
    t.match(shown, /Password: \r\nRepeat the password: \r\n.* has a new password/);
    t.equal(await signIn('battery staple'), 200);
  });

  await t.test('both lines may be pasted at once', async (t) => {
    const terminal = runInTerminal(t, server.databaseUrl, [
      ...['admin', 'createuser', 'bob@example.com', '--confirm'],
    ]);
    await terminal.answer('Password: ', `pasted password${enter}pasted password${enter}`);
    const { exitCode, shown } = await terminal.end();
    t.equal(exitCode, 0, shown);
    t.notMatch(shown, /pasted/);
    t.equal(await signIn('pasted password', 'bob@example.com'), 200);
  });

  await t.test('after three wrong repetitions no password is set', async (t) => {
    const terminal = setPassword(t);
    for (let i = 0; i < 3; i += 1) {
      await terminal.answer('Password: ', `one${enter}`);
      await terminal.answer('Repeat the password: ', `other${enter}`);
    }
    const { exitCode, shown, isRestored } = await terminal.end();
    t.same({ exitCode, isRestored }, { exitCode: 1, isRestored: true });
    t.match(shown, /the passwords were different 3 times: no password was set\r\nexit 1/);
  });

  for (const [name, keys, expected] of [
    ['Ctrl-C', controlC, { exitCode: 130, shown: /interrupted: no password was set\r\nexit 130/ }],
    ['Ctrl-D', controlD, { exitCode: 1, shown: /no password was typed\r\nexit 1/ }],
  ] as const) {
    await t.test(`${name} ends the command and restores the terminal`, async (t) => {
      const terminal = setPassword(t);
      await terminal.answer('Password: ', `unwanted${enter}`);
      await terminal.answer('Repeat the password: ', keys);
      const ended = await terminal.end();
      t.match(ended, { ...expected, isRestored: true });
      t.notMatch(ended.shown, /unwanted|^ +at /m);
      t.equal(await signIn('battery staple'), 200, 'the password is the one before');
    });
  }

  await t.test('a user who does not exist is named before a password is typed', async (t) => {
    const terminal = runInTerminal(t, server.databaseUrl, ['users', 'set-password', 'eve@example.com']);
    const { exitCode, shown } = await terminal.end();
    t.equal(exitCode, 1);
    t.match(shown, /user not found: eve@example.com/);
    t.notMatch(shown, /Password:/);
  });
});
