/** Follows redirects and the button of a page, submits forms, and keeps cookies by origin. */
export class Browser {
  readonly #hosts: Readonly<Record<string, string>>;
  readonly #cookies = new Map<string, Map<string, string>>();

  readonly #toPath: (path: string) => string;

  /**
   * @param hosts origins that are reached at another one, such as that of a test server
   * @param toPath changes paths as a gateway does
   */
  constructor(hosts: Readonly<Record<string, string>> = {}, toPath = (path: string): string => path) {
    this.#hosts = hosts;
    this.#toPath = toPath;
  }

  /** Opens a URL and follows it to one that starts with `until`, which is not opened. */
  async visit(start: string, until: string): Promise<URL> {
    let url = new URL(start);
    let form: URLSearchParams | undefined;
    for (let step = 0; step < maxSteps; step++) {
      if (url.href.startsWith(until)) return url;
      const response = await this.open(url.href, form);
      const text = await response.text();
      const location = response.headers.get('location');
      if (location !== null) {
        url = new URL(location, url);
        form = undefined;
        continue;
      }
      const [tag] = /<form[^>]*>/.exec(text) ?? [];
      const [, link] = /<a class="button" href="([^"]+)"/.exec(text) ?? [];
      if (tag === undefined && link !== undefined) {
        url = new URL(link.replaceAll('&amp;', '&'), url);
        form = undefined;
        continue;
      }
      if (tag === undefined) throw new Error(`${url.href} responded with ${response.status}: ${text}`);
      form = readInputs(text);
      const action = /\saction="([^"]+)"/.exec(tag)?.[1] ?? '';
      if (action !== '') url = new URL(action.replaceAll('&amp;', '&'), url);
    }
    throw new Error(`still not at ${until}, but at ${url.href}`);
  }

  /** Fills in and sends the form of a page whose target contains `target`. */
  async submit(
    url: string,
    fields: Readonly<Record<string, string>>,
    { target = '', headers = {} }: { target?: string; headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Response> {
    const response = await this.open(url);
    const page = await response.text();
    const forms = [...page.matchAll(/<form\b[^>]*\smethod="post" action="([^"]*)"[^>]*>(.*?)<\/form>/gs)];
    const [, action = '', content = ''] = forms.find(([, to = '']) => to.includes(target)) ?? [];
    if (action === '') throw new Error(`${url} responded with ${response.status}, without the form: ${page}`);
    const form = readInputs(content);
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    return this.open(new URL(action.replaceAll('&amp;', '&'), url).href, form, headers);
  }

  /** The cookies of an origin by name. */
  cookies(origin: string): ReadonlyMap<string, string> {
    return this.#cookies.get(origin) ?? new Map<string, string>();
  }

  setCookie(origin: string, [name, value]: readonly [name: string, value: string]): void {
    this.#cookies.set(origin, new Map([...this.cookies(origin), [name, value]]));
  }

  /** Sends one request with the cookies of its origin. */
  async open(
    url: string,
    form?: URLSearchParams,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const { origin } = new URL(url);
    const cookies = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, cookies);
    const path = this.#toPath(url.slice(origin.length));
    const response = await fetch(`${this.#hosts[origin] ?? origin}${path}`, {
      method: form === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: { cookie: Array.from(cookies, (pair) => pair.join('=')).join('; '), ...headers },
      ...(form !== undefined && { body: form }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    return response;
  }
}

const maxSteps = 20;

function readInputs(page: string): URLSearchParams {
  const fields = new URLSearchParams();
  for (const [input] of page.matchAll(/<input[^>]*>/g)) {
    const name = /\sname="([^"]*)"/.exec(input)?.[1];
    const value = /\svalue="([^"]*)"/.exec(input)?.[1];
    if (name !== undefined)
      fields.append(name, (value ?? '').replaceAll('&quot;', '"').replaceAll('&amp;', '&'));
  }
  return fields;
}
