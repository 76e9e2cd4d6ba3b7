import { createLogger } from '@tollgate/kit/logger';
import { StartReport } from '@tollgate/kit/start-report';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Chromium, type ChromiumPage, findChromium, startChromium } from '@tollgate/testkit/chromium';
import { startPostgres } from '@tollgate/testkit/postgres';
import { type AuthServer, startAuthServer } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import root, { type Test } from 'tap';
import { buildApp } from '../../src/app.ts';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';
import { callAdmin, sendJson } from './auth-api.ts';

const chromiumPath = findChromium();
if (chromiumPath instanceof Error && process.env.CI === 'true') throw chromiumPath;

/** Option of tests with Chromium: the reason to leave them out, where it is not installed. */
export const skip = chromiumPath instanceof Error ? `left out: ${chromiumPath.message}` : false;

/** Password of all users. */
const password = 'correct horse battery staple';

/** Role of administrators, in the default of `SVC_JWT_ADMIN_ROLES`. */
const adminRole = 'supabase_admin';

interface SuiteOptions {
  /** More settings of the console, by environment variable. */
  readonly settings?: Readonly<Record<string, string>>;
  /** More settings of the auth server. */
  readonly auth?: Readonly<Record<string, string>>;
  /** Admin scopes that the console asks for. Default: all that pages use. */
  readonly scopes?: readonly string[];
  /** Starts limiters; URLs of their counter APIs. */
  readonly limiterUrls?: (auth: AuthServer) => Promise<readonly string[]>;
}

/** A console over a real auth server, and an administrator who can sign in. */
export class ConsoleSuite {
  readonly url: string;
  /** The password of all users. */
  readonly password = password;
  readonly auth: AuthServer;
  readonly databaseUrl: string;
  readonly admin: { readonly id: string; readonly email: string };
  readonly #chromium: Chromium;
  /** The log of the console so far. */
  readonly logs: () => string;

  private constructor(
    parts: Pick<ConsoleSuite, 'url' | 'auth' | 'databaseUrl' | 'admin' | 'logs'>,
    chromium: Chromium,
  ) {
    this.url = parts.url;
    this.auth = parts.auth;
    this.databaseUrl = parts.databaseUrl;
    this.admin = parts.admin;
    this.logs = parts.logs;
    this.#chromium = chromium;
  }

  static async start(t: Test, options: SuiteOptions = {}): Promise<ConsoleSuite> {
    shared ??= startShared();
    const { postgres, chromium } = await shared;
    const database = await postgres.createDatabase();
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const auth = await startAuthServer(database.url, {
      ...{ SVC_OAUTH_SERVER_ENABLED: 'true', SVC_PAGES_ENABLED: 'true' },
      ...{ SVC_OAUTH_SERVER_CONSOLE_URL: url, ...options.auth },
    });
    t.teardown(() => auth.stop());
    const admin = await createUser(auth.url, { email: 'ada@example.com', role: adminRole });
    const limiterUrls = (await options.limiterUrls?.(auth)) ?? [];
    const logs = await startConsole(t, {
      ...{ CONSOLE_HOST: '127.0.0.1', CONSOLE_PORT: String(port), CONSOLE_EXTERNAL_URL: url },
      ...{ CONSOLE_ADMIN_PORT: '0', CONSOLE_AUTH_ISSUER: auth.url },
      CONSOLE_LIMITER_URLS: limiterUrls.join(),
      ...(options.scopes && { CONSOLE_SCOPES: options.scopes.join() }),
      ...options.settings,
    });
    return new ConsoleSuite(
      { url, auth, databaseUrl: database.url, admin: { id: admin, email: 'ada@example.com' }, logs },
      chromium,
    );
  }

  /** A browser without a session. */
  newPage(): Promise<ChromiumPage> {
    return this.#chromium.newPage();
  }

  /**
   * Opens a page of the console, and signs a person in on the way, by default the administrator.
   * The browser ends at `destination`, by default the page.
   */
  async signIn(
    path: string,
    { email = this.admin.email, destination = path }: { email?: string; destination?: string } = {},
  ): Promise<ChromiumPage> {
    const page = await this.newPage();
    await page.open(this.url + path);
    await page.submit('/sign-in', { identifier: email, password });
    await this.approve(page, destination);
    return page;
  }

  /** Gives the console access: at a loopback address the auth server always asks. */
  async approve(page: ChromiumPage, path: string): Promise<void> {
    await this.awaitPage(page, '/pages/consent');
    await page.evaluate(`document.querySelector('button[value=approve]').click()`);
    await this.awaitPage(page, path);
  }

  /** Waits for a path and query. */
  async awaitPage(page: ChromiumPage, path: string): Promise<void> {
    const read = 'document.readyState === "complete" && location.pathname + location.search';
    await awaitUntil(
      async () => {
        const shown = await page.evaluate(read);
        if (typeof shown === 'string' && shown.startsWith(path)) return true;
        throw new Error(`${String(shown)} is shown: ${await readText(page, 'body')}`);
      },
      { what: `the page ${path}`, timeoutMs: 20_000 },
    );
  }

  /** Calls the admin API of the auth server as an operator does. */
  callAuth(method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> {
    return callAdmin(this.auth.url, { method, path, body });
  }

  /** Sends a request for tokens. Returns the access token. */
  async requestToken(path: string, body: object): Promise<string> {
    return String((await sendJson(this.auth.url + path, { body })).access_token);
  }

  createUser(user: { readonly email: string } & Readonly<Record<string, unknown>>): Promise<string> {
    return createUser(this.auth.url, user);
  }
}

/** Test files of a process share these: each has its own database, each page its own cookies. */
let shared: ReturnType<typeof startShared> | undefined;

async function startShared() {
  const [postgres, chromium] = await Promise.all([startPostgres(), startChromium(String(chromiumPath))]);
  root.teardown(() => Promise.all([postgres.stop(), chromium.stop()]));
  return { postgres, chromium };
}

async function startConsole(t: Test, variables: Readonly<Record<string, string>>): Promise<() => string> {
  const read = readSettings(variables);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const sources = { env: variables };
  const report = new StartReport({ service: 'console', version: '0.0.0', spec: settingsSpec, sources });
  const logger = createLogger({ level: 'debug', format: 'json', destination, onLine: report.readLine });
  const app = await buildApp(read.settings, { logger, nowMs: Date.now, report });
  await app.lifecycle.start();
  t.teardown(() => app.lifecycle.stop('test is over'));
  return () => lines.join('');
}

async function createUser(authUrl: string, user: Readonly<Record<string, unknown>>): Promise<string> {
  const body = { password, email_confirm: true, ...user };
  return String((await callAdmin(authUrl, { method: 'POST', path: '/admin/users', body })).id);
}

/** The cookies that a page sends, as in the header `Cookie`. */
export async function readCookies(page: ChromiumPage, url: string): Promise<string> {
  // Parsed boundary: the protocol of the browser.
  const { cookies } = (await page.send('Network.getCookies', { urls: [url] })) as {
    cookies: { name: string; value: string }[];
  };
  return cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
}

/** The visible text of a page. */
export async function readText(page: ChromiumPage, selector = 'main'): Promise<string> {
  return String(await page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`));
}
