/**
 * Browser of a person, without a browser: keeps cookies, follows redirects, submits forms.
 */
export interface HeadlessBrowser {
  /**
   * Opens an address and goes on, through redirects and forms without a visible field, until it is
   * sent to an address that starts with `until`, which is returned and not opened; or until a page
   * asks nothing more, whose address is returned.
   */
  visit(url: string | URL, until?: string): Promise<URL>;
}

/** More steps than any of the provider's journeys has. */
const maxSteps = 20;

/** Makes a browser with no cookies. */
export function headlessBrowser(): HeadlessBrowser {
  const cookies = new Map<string, string>();

  async function send(url: URL, form?: URLSearchParams): Promise<Response> {
    const response = await fetch(url, {
      method: form === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: { cookie: Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { body: form }),
    });
    for (const cookie of response.headers.getSetCookie()) remember(cookie);
    return response;
  }

  function remember(cookie: string) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
    if (value === '' || /expires=Thu, 01 Jan 1970/i.test(cookie)) cookies.delete(name);
    else cookies.set(name, value);
  }

  async function visit(start: string | URL, until = 'nowhere:'): Promise<URL> {
    let url = new URL(start);
    let form: URLSearchParams | undefined;
    for (let step = 0; step < maxSteps; step++) {
      if (url.href.startsWith(until)) return url;
      const response = await send(url, form);
      const page = await response.text();
      const location = response.headers.get('location');
      if (location !== null) {
        url = new URL(location, url);
        form = undefined;
        continue;
      }
      if (response.status >= 400) throw new Error(`${url.href} answered ${response.status}: ${page}`);
      const next = readForm(page);
      if (next === undefined) return url;
      url = new URL(next.action, url);
      form = next.fields;
    }
    throw new Error(`still not at ${until} after ${maxSteps} steps, but at ${url.href}`);
  }

  return { visit };
}

/** The first form of a page, as it would be sent when nothing is typed. */
function readForm(page: string): { action: string; fields: URLSearchParams } | undefined {
  const action = /<form[^>]*\saction="([^"]+)"/.exec(page)?.[1];
  if (action === undefined) return undefined;
  const fields = new URLSearchParams();
  for (const [input] of page.matchAll(/<input[^>]*>/g)) {
    const name = /\sname="([^"]*)"/.exec(input)?.[1];
    const value = /\svalue="([^"]*)"/.exec(input)?.[1];
    if (name !== undefined && value !== undefined) fields.append(name, value);
  }
  return { action, fields };
}
