import { type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { serviceKey } from '@tollgate/kit/service-key';
import { type AuthServer, authServerSecret } from '@tollgate/testkit/services';

export interface Get {
  readonly path?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Address of the client; default: the address of the machine. */
  readonly from?: string;
  /** URL of the Gateway, if it is another. */
  readonly at?: string;
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

export interface SignedUp {
  readonly id: string;
  readonly token: string;
}

/** A client of a Gateway. fetch cannot choose the address of the client. */
export class GatewayClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  get({ path = '/orders', token, headers = {}, from, at = this.#url }: Get): Promise<Answer> {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      const options = { headers: { ...headers, ...authorization }, agent: false, localAddress: from };
      const outgoing = request(`${at}${path}`, { ...options, signal: AbortSignal.timeout(20_000) });
      outgoing.once('error', reject);
      outgoing.once('response', (answer) =>
        text(answer).then(
          (body) => resolve({ status: answer.statusCode ?? 0, body, headers: answer.headers }),
          reject,
        ),
      );
      outgoing.end();
    });
  }

  /** As `10x200 2x429`. */
  async getTimes(times: number, what: Get): Promise<string> {
    const counts = new Map<number, number>();
    for (let i = 0; i < times; i += 1) {
      const { status } = await this.get(what);
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
    return formatCounts(counts);
  }

  /** A user who has signed up through the Gateway. */
  async signUp(auth: AuthServer, name: string, appMetadata: object = {}): Promise<SignedUp> {
    const credentials = { email: `${name}@example.com`, password: 'correct horse battery' };
    // Parsed boundary: the service's own JSON.
    const { access_token: token, user } = (await sendJson(
      'POST',
      `${this.#url}/auth/signup`,
      credentials,
    )) as {
      access_token: string;
      user: { id: string };
    };
    const authorization = `Bearer ${serviceKey(authServerSecret)}`;
    const change = { app_metadata: appMetadata };
    await sendJson('PUT', `${auth.url}/admin/users/${user.id}`, change, { authorization });
    return { id: user.id, token };
  }
}

export const formatCounts = (counts: Iterable<readonly [number | string, number]>): string =>
  [...counts].map(([answer, count]) => `${count}x${answer}`).join(' ');

async function sendJson(method: string, target: string, body: object, headers = {}): Promise<unknown> {
  const answer = await fetch(target, {
    method,
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
    headers: { 'content-type': 'application/json', ...headers },
  });
  if (!answer.ok) throw new Error(`${method} ${target} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}
