// The examples of clients of the OAuth server, as their pages start them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { programEnvironment } from '@tollgate/testkit/processes';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import { Browser } from '../../services/auth/test/helpers/browser.ts';
import { documentSteps } from './support/document-shell.ts';

/** Starts a command of a page, which is stopped with the test. Returns its output so far. */
function run(command: string, variables: Readonly<Record<string, string>> = {}) {
  const words = command.trim().split(' ');
  const nodeAt = words.indexOf('node');
  const given = words.slice(0, nodeAt).map((word) => word.split('=', 2));
  const env = programEnvironment({ ...Object.fromEntries(given), ...variables });
  const child = spawn(process.execPath, words.slice(nodeAt + 1), {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const exited = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGINT');
    await exited;
  });
  return async (pattern: RegExp): Promise<string> => {
    const match = () => pattern.exec(output)?.[1];
    return (await awaitUntil(match, { what: `${pattern} of ${command}`, timeoutMs: 150_000 })) ?? '';
  };
}

t.test('clients sign a user in with nothing but a URL, or with issuer, id and secret', async (t) => {
  const page = documentSteps(await readFile('examples/mcp/README.md', 'utf8'));
  t.match(page[0]?.script, /^node examples\/mcp\/start\.ts .*\nnode examples\/mcp\/client\.ts http/m);
  const appPort = await freePort();
  const started = run('node examples/mcp/start.ts', { PORT: String(appPort) });
  const clientCommand = await started(/^ {2}(node examples\/mcp\/client.*)$/m);
  const appCommand = await started(/^ {2}(ISSUER.*)$/m);

  const client = run(clientCommand);
  const browser = new Browser();
  const authorization = await client(/^(http.*)$/m);
  const issuer = new URL(authorization).origin;
  const { search } = await browser.visit(authorization, `${issuer}/pages/sign-in`);
  const account = { email: 'ada@example.com', password: 'correct horse battery' };
  await browser.submit(`${issuer}/pages/sign-up${search}`, account, { target: 'sign-up' });
  const allow = (url: string) => browser.submit(url, { action: 'approve' }, { target: 'consent' });
  const { headers } = await allow(`${issuer}/pages/consent${search}`);
  await browser.open(headers.get('location') ?? '');
  t.match(await client(/The tool says: (.*)$/m), /1 lamp, 2 chairs \(user [\w-]{36}, client [\w-]{36}\)/);

  const origin = await run(appCommand, { PORT: String(appPort) })(/Open (\S+)/);
  const consent = await browser.visit(`${origin}/sign-in`, `${issuer}/pages/consent`);
  const callback = (await allow(consent.href)).headers.get('location') ?? '';
  t.match(await browser.open(callback), { status: 303 });
  t.match(await (await browser.open(origin)).text(), 'Signed in as ada@example.com');
  const signOut = (await browser.open(`${origin}/sign-out`)).headers.get('location') ?? '';
  await browser.visit(signOut, `${origin}/`);
  t.match(await (await browser.open(origin)).text(), 'Sign in</a>');
});
