import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from './folders.ts';
import { findBinary, startServerProcess } from './processes.ts';

/** A Chromium without a window, driven by the DevTools protocol. */
export interface Chromium {
  /** A page with cookies of its own. */
  newPage(): Promise<ChromiumPage>;
  stop(): Promise<void>;
}

const names = ['chromium-headless-shell', 'chromium', 'google-chrome', 'chromium-browser'];

/** Its binary; the error of the search without one. */
export function findChromium(): string | Error {
  let failure: unknown;
  for (const name of names) {
    try {
      return findBinary(name);
    } catch (error) {
      failure = error;
    }
  }
  return failure instanceof Error ? failure : new Error('no Chromium');
}

const flags = [
  '--headless',
  // Its sandbox does not work for root or in containers; all that it opens is ours.
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  ...['--no-first-run', '--disable-background-networking', '--disable-component-update'],
  '--remote-debugging-port=0',
  // Certificates of tests are of an authority that it does not know.
  '--ignore-certificate-errors',
];

/** `hosts` are reached at other addresses: `{ 'example.com:80': '127.0.0.1:1234' }`. */
export async function startChromium(
  binary: string,
  hosts: Readonly<Record<string, string>> = {},
): Promise<Chromium> {
  const rules = Object.entries(hosts).map(([from, to]) => `MAP ${from} ${to}`);
  const profile = temporaryFolder();
  let address: readonly string[] = [];
  const server = await startServerProcess({
    command: binary,
    args: [
      ...flags,
      `--host-resolver-rules=${rules.join()}`,
      `--user-data-dir=${profile.path}`,
      'about:blank',
    ],
    ready: async () => {
      // Written once Chromium listens: port and path.
      const lines = (await readFile(join(profile.path, 'DevToolsActivePort'), 'utf8')).trim().split('\n');
      // It may have been read while it was written.
      if (lines.length < 2) throw new Error('DevToolsActivePort is not complete');
      address = lines;
    },
  });
  const connection = await Connection.open(`ws://127.0.0.1:${address[0]}${address[1]}`);
  return {
    newPage: async () => {
      const { browserContextId } = await connection.send('Target.createBrowserContext');
      const { targetId } = await connection.send('Target.createTarget', {
        url: 'about:blank',
        browserContextId,
      });
      const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true });
      const page = new ChromiumPage(connection, String(sessionId));
      await page.send('Page.enable');
      return page;
    },
    stop: async () => {
      connection.close();
      await server.kill();
      profile.remove();
    },
  };
}

type Result = Readonly<Record<string, unknown>>;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly sessionId?: string;
  readonly result?: Result;
  readonly error?: { readonly message: string };
}

/** @see https://chromedevtools.github.io/devtools-protocol/ */
class Connection {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, PromiseWithResolvers<Result>>();
  readonly #listeners = new Map<string, () => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      this.#receive(JSON.parse(String(data)) as Message); // of the protocol
    });
  }

  static async open(url: string): Promise<Connection> {
    const socket = new WebSocket(url);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error(`no connection to ${url}`)));
    await promise;
    return new Connection(socket);
  }

  async send(method: string, params: Result = {}, sessionId?: string): Promise<Result> {
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<Result>();
    this.#pending.set(id, answer);
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
    return answer.promise;
  }

  /** Resolves with the next event of a session. */
  next(method: string, sessionId: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listeners.set(`${sessionId} ${method}`, resolve);
    return promise;
  }

  close(): void {
    this.#socket.close();
  }

  #receive({ id, method, sessionId, result = {}, error }: Message): void {
    if (id === undefined) {
      this.#listeners.get(`${sessionId} ${method}`)?.();
      return;
    }
    const answer = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(error.message));
  }
}

/** A page of Chromium. */
export class ChromiumPage {
  readonly #connection: Connection;
  readonly #sessionId: string;

  constructor(connection: Connection, sessionId: string) {
    this.#connection = connection;
    this.#sessionId = sessionId;
  }

  send(method: string, params?: Result): Promise<Result> {
    return this.#connection.send(method, params, this.#sessionId);
  }

  async open(url: string): Promise<void> {
    await this.navigate(async () => {
      const { errorText } = await this.send('Page.navigate', { url });
      if (errorText !== undefined) throw new Error(`${url}: ${String(errorText)}`);
    });
  }

  /** Does something that loads a page, and waits for that. */
  async navigate(action: () => Promise<unknown>): Promise<void> {
    const loaded = this.#connection.next('Page.loadEventFired', this.#sessionId);
    await action();
    await loaded;
  }

  /** Fills in and sends the form with these fields whose target has this end. */
  async submit(target: string, fields: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.navigate(() =>
      this.evaluate(`(() => {
        const fields = Object.entries(${JSON.stringify(fields)});
        const form = [...document.forms].find((one) =>
          new URL(one.getAttribute('action') ?? '', location).pathname.endsWith(${JSON.stringify(target)}) &&
          fields.every(([name]) => name in one.elements));
        if (form === undefined) throw new Error('the page has no such form: ' + document.body.innerText);
        for (const [name, value] of fields) form.elements[name].value = value;
        form.requestSubmit();
      })()`),
    );
  }

  /** Evaluates an expression, whose value must be JSON. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
      userGesture: true,
    });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value?: unknown }).value; // of the protocol
  }

  /** Presses a key, such as `Tab` or `Enter`. */
  async press(key: 'Tab' | 'Enter'): Promise<void> {
    const code = key === 'Tab' ? 9 : 13;
    const event = { key, code: key, windowsVirtualKeyCode: code, ...(key === 'Enter' && { text: '\r' }) };
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  }

  /** Types into the focused element. */
  async type(text: string): Promise<void> {
    await this.send('Input.insertText', { text });
  }

  /** A PNG of the whole page. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { captureBeyondViewport: true });
    return Buffer.from(String(data), 'base64');
  }
}
