// The example of a web application, as its page starts it.
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { Browser } from '../../services/auth/test/helpers/browser.ts';
import { type RawResponse, rawRequest } from '../../services/auth/test/helpers/raw-request.ts';
import { documentSteps } from './support/document-shell.ts';
import { runExample } from './support/run-example.ts';

t.setTimeout(300_000);

/** A browser at one origin; `fetch` cannot send the headers of a navigation. */
class Tab {
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();

  constructor(origin: string) {
    this.#origin = origin;
  }

  async open(path: string, { method = 'GET', body = '', origin = this.#origin } = {}): Promise<RawResponse> {
    const cookie = Array.from(this.#cookies, (pair) => pair.join('=')).join('; ');
    const headers = [
      'accept',
      'text/html',
      'cookie',
      cookie,
      ...(method === 'POST' ? ['origin', origin] : []),
    ];
    const response = await rawRequest(this.#origin, path, { method, body, headers });
    for (const cookie of response.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      this.#cookies.set(name, value);
    }
    return response;
  }
}

t.test('a browser signs up, uses the application, and signs out', async (t) => {
  const [step] = documentSteps(await readFile('examples/web/README.md', 'utf8'));
  t.match(step?.script, /^node examples\/web\/start\.ts /m);
  const origin = await runExample(t, 'node examples/web/start.ts')(/Open (http:.*)\/ in/);
  const tab = new Tab(origin);
  const { status, headers } = await tab.open('/');
  t.equal(status, 302);
  const start = headers.location ?? '';
  const pages = `${new URL(start).origin}/pages`;
  const browser = new Browser();
  const { search } = await browser.visit(start, `${pages}/sign-in`);
  const account = { email: 'ada@example.com', password: 'correct horse battery' };
  const signedUp = await browser.submit(`${pages}/sign-up${search}`, account, { target: 'sign-up' });
  const back = new URL(signedUp.headers.get('location') ?? '', pages);
  const callback = await browser.visit(back.href, origin);
  t.match(await tab.open(callback.href.slice(origin.length)), { status: 302 });
  t.match((await tab.open('/')).text, /Signed in as [\w-]{36}, plan free/);

  const note = { method: 'POST', body: 'note=milk+%26+bread' };
  t.match(await tab.open('/', { ...note, origin: 'https://evil.test' }), { status: 403 });
  t.match(await tab.open('/', note), { status: 303 });
  t.match((await tab.open('/')).text, '<li>milk &amp; bread</li>');

  t.match(await tab.open('/.tollgate/sign-out', { method: 'POST' }), { status: 303 });
  t.match(await tab.open('/'), { status: 302 });
});
