// The examples of clients of the OAuth server, as their pages start them.
import { readFile } from 'node:fs/promises';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import { Browser } from '../../services/auth/test/helpers/browser.ts';
import { documentSteps } from './support/document-shell.ts';
import { runExample } from './support/run-example.ts';

t.test('clients sign a user in with nothing but a URL, or with issuer, id and secret', async (t) => {
  const page = documentSteps(await readFile('examples/mcp/README.md', 'utf8'));
  t.match(page[0]?.script, /^node examples\/mcp\/start\.ts .*\nnode examples\/mcp\/client\.ts http/m);
  const appPort = await freePort();
  const started = runExample(t, 'node examples/mcp/start.ts', { PORT: String(appPort) });
  const clientCommand = await started(/^ {2}(node examples\/mcp\/client.*)$/m);
  const appCommand = await started(/^ {2}(ISSUER.*)$/m);

  const client = runExample(t, clientCommand);
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

  const origin = await runExample(t, appCommand, { PORT: String(appPort) })(/Open (\S+)/);
  const consent = await browser.visit(`${origin}/sign-in`, `${issuer}/pages/consent`);
  const callback = (await allow(consent.href)).headers.get('location') ?? '';
  t.match(await browser.open(callback), { status: 303 });
  t.match(await (await browser.open(origin)).text(), 'Signed in as ada@example.com');
  const signOut = (await browser.open(`${origin}/sign-out`)).headers.get('location') ?? '';
  await browser.visit(signOut, `${origin}/`);
  t.match(await (await browser.open(origin)).text(), 'Sign in</a>');
});
