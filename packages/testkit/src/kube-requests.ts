import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';

const timeoutMs = 30_000;

/** Reads from a Kubernetes API server, whose authority `fetch` cannot be given. */
export class KubeReader {
  readonly #url: string;
  readonly #token: string;
  readonly #agent: Agent;

  constructor(options: { readonly url: string; readonly ca: string; readonly token: string }) {
    this.#url = options.url;
    this.#token = options.token;
    this.#agent = new Agent({ ca: options.ca, keepAlive: true });
  }

  /**
   * The body of a path.
   *
   * @throws Error with the answer when its status is not 200.
   */
  read(path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const outgoing = request(`${this.#url}${path}`, {
        agent: this.#agent,
        headers: { authorization: `Bearer ${this.#token}` },
        signal: AbortSignal.timeout(timeoutMs),
      });
      outgoing.once('error', reject);
      outgoing.once('response', (response) => {
        text(response).then((body) => {
          if (response.statusCode === 200) resolve(body);
          else reject(new Error(`${path} answered ${response.statusCode}: ${body}`));
        }, reject);
      });
      outgoing.end();
    });
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }
}
