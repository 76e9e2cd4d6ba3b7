// cspell:ignore arser
import type { ChromiumPage } from '@tollgate/testkit/chromium';

/** A response of the console. */
export interface Answer {
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A document as a browser parses it. */
export interface InspectedDocument {
  /** Elements, attributes and URLs that the console does not write. */
  readonly problems: readonly string[];
  readonly text: string;
  /** Paths of links of the console. */
  readonly links: readonly string[];
  readonly forms: readonly {
    readonly method: string;
    readonly path: string;
    /** Values by name. */
    readonly fields: Readonly<Record<string, string>>;
  }[];
}

/** Runs in the browser. Nothing of the document is loaded or run: it is only parsed. */
const inspectSource = `globalThis.inspect = (markup, base, origins) => {
  const parsed = new DOMParser().parseFromString(markup, 'text/html');
  const problems = [];
  const urls = new Set(['href', 'src', 'action', 'formaction', 'xlink:href', 'data', 'poster', 'ping', 'hx-get', 'hx-post']);
  for (const element of parsed.querySelectorAll('*')) {
    const name = element.localName;
    if (/^(img|iframe|object|embed|base|i|style|frame|portal|audio|video)$/.test(name)) problems.push('<' + name + '>');
    if (name === 'script' && (element.textContent !== '' || !element.getAttribute('src')?.startsWith('/assets/')))
      problems.push(element.outerHTML.slice(0, 200));
    if (name === 'meta' && element.hasAttribute('http-equiv')) problems.push(element.outerHTML);
    for (const { name: attribute, value } of element.attributes) {
      if (/^on|^style$|^srcdoc$|attack/.test(attribute)) problems.push('attribute ' + attribute);
      if (!urls.has(attribute)) continue;
      const url = URL.canParse(value, base) ? new URL(value, base) : undefined;
      if (url === undefined || !origins.includes(url.origin)) problems.push(attribute + '=' + value);
    }
  }
  const own = (value) => new URL(value, base);
  const links = [...parsed.querySelectorAll('a[href]')].map((link) => own(link.getAttribute('href')))
    .filter(({ origin }) => origin === new URL(base).origin).map(({ pathname, search }) => pathname + search);
  const forms = [...parsed.querySelectorAll('form')].map((form) => {
    const url = own(form.getAttribute('action') ?? base);
    const fields = [...form.querySelectorAll('[name]')].map((field) => [field.getAttribute('name'), field.getAttribute('value') ?? '']);
    return { method: form.method, path: url.pathname + url.search, fields: Object.fromEntries(fields) };
  });
  return { problems, text: parsed.body.textContent, links, forms };
}`;

/** Sends requests with a session, and parses what comes back as a browser does. */
export class Crawler {
  readonly #page: ChromiumPage;
  readonly #url: string;
  readonly #cookie: string;
  /** Origins that links may have. */
  readonly #origins: readonly string[];
  /** Every response so far. */
  readonly answers: Answer[] = [];

  private constructor(page: ChromiumPage, options: CrawlerOptions) {
    this.#page = page;
    this.#url = options.url;
    this.#cookie = options.cookie;
    this.#origins = [options.url, ...options.origins];
  }

  static async open(page: ChromiumPage, options: CrawlerOptions): Promise<Crawler> {
    await page.evaluate(inspectSource);
    return new Crawler(page, options);
  }

  async send(path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers(init.headers);
    if (!headers.has('cookie')) headers.set('cookie', this.#cookie);
    const response = await fetch(this.#url + path, { redirect: 'manual', ...init, headers });
    const answer = { path, status: response.status, headers: response.headers, text: await response.text() };
    this.answers.push(answer);
    return answer;
  }

  /** Sends a form. The page that follows a redirect is the answer. */
  async submit(path: string, fields: Readonly<Record<string, string>>): Promise<Answer> {
    const answer = await this.send(path, { method: 'POST', body: new URLSearchParams(fields) });
    const location = answer.headers.get('location');
    if (location === null) return answer;
    return this.send(location.replace(this.#url, ''));
  }

  async inspect({ path, text }: Answer): Promise<InspectedDocument> {
    const values = [text, this.#url + path, this.#origins].map((value) => JSON.stringify(value));
    // Parsed boundary: the function above returns it.
    return (await this.#page.evaluate(`inspect(${values.join()})`)) as InspectedDocument;
  }
}

interface CrawlerOptions {
  readonly url: string;
  readonly cookie: string;
  readonly origins: readonly string[];
}
