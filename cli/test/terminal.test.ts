// Commands write to a terminal with a size, a pipe or a file.
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import {
  adminToken as limiterToken,
  startCounterApi,
} from '../../services/ratelimit/test/support/counter-api.ts';
import { describeOutput } from '../src/output/terminal.ts';
import { cli } from './helpers/tollgate.ts';

const mainFile = resolve(import.meta.dirname, '../src/main.ts');
const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }]';

/** Shows the cursor, wraps lines and leaves the alternate screen. */
const restored = '\u001b[?7h\u001b[?25h\u001b[?1049l';

/** Runs a command line in which `tollgate` is the program. */
function shell(t: Test, line: string, env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn('sh', ['-c', `tollgate() { "${process.execPath}" "${mainFile}" "$@"; }\n${line}`], {
    env: { ...process.env, TOLLGATE_CONFIG: '/nonexistent/config.json', ...env },
    stdio: 'pipe',
  });
  t.teardown(() => child.kill());
  return child;
}

async function runShell(t: Test, line: string, env?: NodeJS.ProcessEnv) {
  const { stdout, stderr } = shell(t, line, env);
  if (stdout === null || stderr === null) throw new Error('both are pipes');
  const [output, errors] = await Promise.all([text(stdout), text(stderr)]);
  return { output, errors };
}

t.test('a reader that has seen enough ends a command, without an error', async (t) => {
  t.same(await runShell(t, 'tollgate --help | head -n 1'), {
    output: 'Usage: tollgate [options] [command]\n',
    errors: '',
  });
  const full = await runShell(t, 'tollgate --help > /dev/full; echo $?');
  t.match(full, { output: '1\n', errors: /^standard output cannot be written: ENOSPC/ });
});

t.test('an output has colours and a screen only where it is a terminal', async (t) => {
  const output = Object.assign(new EventEmitter(), { isTTY: true, rows: 40 }) as never; // what is used of it
  t.match(describeOutput(output, {}), { hasColours: true, screen: Object });
  t.match(describeOutput(output, { NO_COLOR: '1' }), { hasColours: false, screen: Object });
  t.match(describeOutput(output, { NO_COLOR: '' }), { hasColours: true }, 'as no-color.org says');
  t.same(describeOutput(output, { TERM: 'dumb' }), { hasColours: false });
  t.same(describeOutput({ ...new EventEmitter(), isTTY: false } as never, {}), { hasColours: false });
  t.equal(describeOutput(output, {}).screen?.rows(), 40);
});

t.test('top', async (t) => {
  const { base, decide } = await startCounterApi(t, { rules: { 'shop.yaml': rules } });
  for (const user of ['ann', 'ann', 'ann', 'bob', 'carol', 'dan']) await decide('shop', `user=${user}`);
  const env = { TOLLGATE_LIMITER_URLS: base, TOLLGATE_LIMITER_TOKEN: limiterToken };

  await t.test('is one plain table where the output is no terminal', async (t) => {
    const { output, exitCode } = await cli(t, env)('top');
    t.equal(exitCode, 0);
    t.match(output, /^HITS +REFUSED .*\n3 +1 .* user=ann\n1 +0 .*\n1 .*\n1 .*\n$/);
    t.notOk(output.includes('\u001b'));
  });

  await t.test('is drawn again for a new size, and restores the screen', async (t) => {
    const resized = new EventEmitter();
    let rows = 24;
    let shown = '';
    const stop = new AbortController();
    const screen = {
      rows: () => rows,
      onResize(listener: () => void) {
        resized.on('resize', listener);
        return () => resized.off('resize', listener);
      },
    };
    const running = { signal: stop.signal, screen, onOutput: (text: string) => (shown += text) };
    const ended = cli(t, env, '', running)('top', '--interval', '1h');
    await awaitUntil(() => shown.includes('user=dan'), { what: 'the first table' });
    t.ok(shown.startsWith('\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[HHits of '), 'on a screen of its own');
    t.ok(shown.includes('\u001b[2mHITS'), 'the heading is dim');
    rows = 5;
    shown = '';
    resized.emit('resize');
    t.equal(shown.split('\n').length, 5, 'no line more than fits');
    t.match(shown, 'user=ann');
    t.notMatch(shown, 'user=dan');
    t.ok(shown.endsWith('\u001b[J'), 'the last line does not scroll');
    stop.abort();
    t.match(await ended, { exitCode: 0, errors: '' });
    t.ok(shown.endsWith(restored));
    t.equal(resized.listenerCount('resize'), 0);
  });

  const skip = existsSync('/usr/bin/script') ? false : 'script is not installed';
  await t.test('on a real terminal, Ctrl-C restores the screen', { skip }, async (t) => {
    const command = `"${process.execPath}" "${mainFile}" top`;
    const child = shell(t, `exec script --quiet --return --command '${command}' /dev/null`, {
      ...env,
      TERM: 'xterm',
      NO_COLOR: '1',
    });
    let shown = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    await awaitUntil(() => shown.includes('user=ann'), { what: 'the table', timeoutMs: 60_000 });
    const closed = once(child, 'close');
    child.stdin?.write('\u0003');
    await closed;
    t.ok(shown.includes(restored), JSON.stringify(shown.slice(-80)));
  });
});
