import type { AuthServer } from './auth-server.ts';
import { type AuthzClient, summary } from './authz-client.ts';
import { Browser } from './browser.ts';

/** Headers with which browsers ask for pages. */
export const navigation = { accept: 'text/html,*/*', 'sec-fetch-mode': 'navigate' };
const ada = { identifier: 'ada@example.com', password: 'correct horse' };

/** The auth server, and what asks it as a gateway does. */
export interface Gateway {
  readonly server: Pick<AuthServer, 'url'>;
  readonly client: Pick<AuthzClient, 'check'>;
  /** The origin of the pages. */
  readonly apiUrl: string;
}

/** A browser whose requests to applications are checks of a gateway. */
export class AppBrowser {
  readonly pages: Browser;
  readonly #gateway: Gateway;
  readonly #cookies = new Map<string, Map<string, string>>();

  /** @param other a browser that has signed in to the pages */
  constructor(gateway: Gateway, other?: AppBrowser) {
    this.#gateway = gateway;
    this.pages = other?.pages ?? new Browser({ [gateway.apiUrl]: gateway.server.url });
  }

  /** The cookies of a host, as a header. */
  cookie(host: string): string {
    return Array.from(this.#cookies.get(host) ?? [], (pair) => pair.join('=')).join('; ');
  }

  /** Takes the cookies of a host from another browser. */
  steal(host: string, cookie: string): void {
    this.#cookies.set(
      host,
      new Map(cookie.split('; ').map((pair) => pair.split('=', 2) as [string, string])),
    );
  }

  async check(url: string, headers: Readonly<Record<string, string>> = navigation, method = 'GET') {
    const [, host = '', path = '/'] = /^https:\/\/([^/]+)(.*)$/.exec(url) ?? [];
    const cookie = this.cookie(host);
    const sent = { ...(cookie !== '' && { cookie }), ...headers };
    const answer = summary(await this.#gateway.client.check({ method, path, host, headers: sent }));
    const { 'set-cookie': set = '' } = answer.headers ?? {};
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
    const cookies = this.#cookies.get(host) ?? new Map<string, string>();
    if (name !== '') this.#cookies.set(host, cookies.set(name, value));
    const outcome = answer.httpStatus === undefined ? '200' : `${answer.httpStatus} ${answer.errorCode}`;
    return { ...answer, outcome, setCookie: set };
  }

  /** Opens a URL without a session; returns the sign-in page to which it leads. */
  async begin(url: string): Promise<string> {
    const { outcome, headers = {} } = await this.check(url);
    if (outcome !== '302 sign_in_required') throw new Error(`${url}: ${outcome}`);
    return headers.location ?? '';
  }

  /** Signs in at the pages, and returns the URL with the code. */
  async findCode(page: string): Promise<string> {
    return (await this.pages.visit(page, 'https://app')).href;
  }

  async signInToPages(): Promise<void> {
    await this.pages.submit(`${this.#gateway.apiUrl}/pages/sign-in`, ada);
  }

  async signIn(url: string) {
    await this.signInToPages();
    return this.check(await this.findCode(await this.begin(url)));
  }
}
