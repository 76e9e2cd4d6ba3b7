// The demo as it is started from a shell, and what it says that one can try, pasted into another.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { programEnvironment } from '@tollgate/testkit/processes';
import t, { type Test } from 'tap';
import { Browser } from '../../../services/auth/test/helpers/browser.ts';
import { scenario } from '../scenario.ts';

const mainFile = resolve(import.meta.dirname, '../main.ts');
const rowCount = scenario.flatMap(({ rows }) => rows).length;
const summary = `${rowCount} of ${rowCount} as expected`;

/** It takes ten seconds on an idle machine with two cores; other tests share it. */
const timeoutMs = 150_000;

/** Starts the demo; it is stopped with the test. */
function startDemo(t: Test, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [mainFile, ...args], {
    env: programEnvironment({ NO_COLOR: '1', ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const exited = once(child, 'close');
  const stop = async () => {
    child.kill('SIGINT');
    await exited;
  };
  t.teardown(stop);
  return {
    output: () => output,
    stop,
    hasEnded: () => child.exitCode !== null,
    exitCode: async () => {
      await exited;
      return child.exitCode;
    },
  };
}

/**
 * A command that asks again after a change is preceded by the same one, again and again until the
 * change is known: at once, but for a machine with other work.
 */
function patiently(command: string, index: number, commands: readonly string[]): readonly string[] {
  const changed = commands[index - 1] ?? '';
  const known = changed.includes('-X PUT')
    ? 'ratelimit-limit: 1000'
    : changed.includes('/logout')
      ? 'HTTP/1.1 401'
      : undefined;
  return known === undefined
    ? [command]
    : [`until ${command} -s | grep -q '${known}'; do sleep 0.1; done`, command];
}

/** Runs commands in one shell, as if pasted. */
async function paste(commands: readonly string[]): Promise<string> {
  const shell = spawn('sh', ['-e'], { stdio: ['pipe', 'pipe', 'inherit'], timeout: timeoutMs });
  shell.stdin.end(`${commands.join('\n')}\n`);
  return text(shell.stdout);
}

const pagesFolder = resolve(import.meta.dirname, '../../../docs');

/** The commands at the start of a page, for the URLs and the key that a demo has shown. */
function commandsOf(page: string, shown: string): readonly string[] {
  const [, block = ''] =
    /^## Start$.*?^```sh\n(.*?)^```$/ms.exec(readFileSync(`${pagesFolder}/${page}`, 'utf8')) ?? [];
  const [, key = ''] = /^ *(SERVICE_KEY=.*)$/m.exec(shown) ?? [];
  const [, gateway = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/auth\/token/.exec(shown) ?? [];
  const [, auth = ''] = /curl -X PUT (http:\/\/127\.0\.0\.1:\d+)\//.exec(shown) ?? [];
  return block
    .replace('make demo\n', '')
    .replace('SERVICE_KEY=…', key)
    .replaceAll('http://127.0.0.1:10000', gateway)
    .replaceAll('http://127.0.0.1:9002', auth)
    .trimEnd()
    .split('\n');
}

/** Changes a limit and a plan in the console, with the account that the demo has shown. */
async function useConsole(shown: string): Promise<void> {
  const [, url = '', identifier = '', password = ''] =
    /^ {2}(http\S+)\/\n {2}(\S+@\S+)\n {2}(\S+)$/m.exec(shown) ?? [];
  const browser = new Browser();
  const [gateway = ''] = /http:\/\/127\.0\.0\.1:\d+\/auth\//.exec(shown) ?? [];
  const { href: asked } = await browser.visit(`${url}/`, `${gateway}pages/sign-in`);
  const signedIn = await browser.submit(asked, { identifier, password }, { target: '/sign-in' });
  const consent = new URL(signedIn.headers.get('location') ?? '', asked).href;
  const approved = await browser.submit(consent, { action: 'approve' }, { target: '/consent' });
  await browser.open(new URL(approved.headers.get('location') ?? '', consent).href);
  const link = async (path: string, pattern: RegExp): Promise<string> => {
    const page = await (await browser.open(url + path)).text();
    const [, href = ''] = pattern.exec(page) ?? [];
    if (href === '') throw new Error(`no ${pattern} in ${page}`);
    return url + href.replaceAll('&amp;', '&');
  };
  const key = await awaitUntil(
    () => link('/limits?state=over&q=limit%3Dper-user', /href="(\/limits\/counter\?[^"]*user_id[^"]*)"/),
    { what: 'a user above the limit', timeoutMs },
  );
  const override = { requestsPerUnit: '321', duration: '1h', reason: 'a test' };
  await browser.submit(key, override, { target: '/limits/override' });
  const user = await link('/users', /href="(\/users\/[^"]+)"[^>]*>carol@example.com/);
  await browser.submit(`${user}/plan`, { plan: 'gold' }, { target: '/plan' });
}

t.test('every row has the expected result, and the suggested commands work', async (t) => {
  const demo = startDemo(t, []);
  await awaitUntil(() => demo.hasEnded() || demo.output().includes('Ctrl-C stops everything'), {
    what: 'the end of the table',
    timeoutMs,
  });
  const shown = demo.output();
  t.ok(shown.includes(summary), 'all is as expected', { shown });

  const lines = shown.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.slice(2)] : []));
  const commands = lines.filter((line) => /^(curl |[A-Z_]+=)/.test(line));
  const explain = commands.filter((line) => line.includes('/explain'));
  await awaitUntil(async () => (await paste(explain)).includes('limited to 5 per hour'), {
    what: 'the limits as they were before the scenario',
    timeoutMs,
  });
  const output = await paste(commands.flatMap(patiently));
  t.same(
    output.match(/(?<=HTTP\/1\.1 )\d+/g),
    // As bob, without a token, bob without the role, bob with the role, signing out, and with the
    // old token.
    ['200', '401', '403', '200', '204', '401'],
    'the answers with a head',
    { output },
  );
  t.match(output, /^ratelimit-limit: 5\r?$/m, 'the limit of the plan');
  t.match(output, /^ratelimit-limit: 1000\r?$/m, 'the limit of the plan after the upgrade');
  t.match(output, /"confirmation_sent_at"/, 'a user has signed up');
  t.match(output, /per-user/, 'the limiter explains a rule');
  t.match(output, /^cluster\.shop\.ext_authz\.denied: \d+$/m, 'Envoy tells what it counted');

  await useConsole(shown);
  const typed = await paste(lines.filter((line) => /^(?:\. |tollgate )/.test(line)));
  t.match(typed, /limit=per-user,\S*user_id=\S+ +321 .* admin@example\.com +a test\n/, 'limits overrides');
  t.match(typed, /^HITS +REFUSED /m, 'top');
  t.match(typed, /carol@example\.com +gold /, 'users get');

  for (const page of ['api-keys.md', 'organizations.md']) {
    const answers = await paste(commandsOf(page, shown));
    t.same(
      answers.match(/(?<=HTTP\/1\.1 )\d+/g),
      ['200', '200', '200', '429'],
      `the commands at the start of docs/${page}`,
      { answers },
    );
  }

  const files = lines.filter((line) => /^\/.*\.yaml$/.test(line));
  t.equal(files.length, 1, 'the policy is a file to be edited');
  for (const file of files) {
    const before = demo.output().length;
    writeFileSync(
      file,
      readFileSync(file, 'utf8')
        .replace('requests: 5', 'requests: 6')
        .replace('assurance: AAL2', 'type: Denied'),
    );
    await awaitUntil(() => /level=info msg="[^"]*rules/.test(demo.output().slice(before)), {
      what: `a word about the edit of ${file}`,
      timeoutMs,
    });
  }
  await demo.stop();
  t.equal(await demo.exitCode(), 0);
  for (const file of files) t.notOk(existsSync(file), `${file} is gone`);
});
