import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { JsonObject } from '@tollgate/kit/json';
import { startWebServer } from '@tollgate/testkit/web-server';
import type t from 'tap';
import type { HookName } from '../../src/config/hook-definitions.ts';

/** A signing secret and its form in the settings. */
export interface HookSecret {
  readonly key: Buffer;
  readonly text: string;
}

export function hookSecret(letter: string): HookSecret {
  const key = Buffer.alloc(32, letter);
  return { key, text: `v1,whsec_${key.toString('base64')}` };
}

export interface HookRequest {
  readonly body: string;
  /** The parsed body. */
  readonly event: JsonObject;
  readonly headers: IncomingHttpHeaders;
}

/** A response; an object is sent as JSON. */
interface HookAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface HookServer {
  readonly url: string;
  readonly requests: readonly HookRequest[];
  /** The last event. Throws if there was none. */
  last(): JsonObject;
  /** Variables without `SVC_` that enable hooks at this server. */
  variables(...names: readonly HookName[]): Readonly<Record<string, string>>;
  /** Answers of the next requests; the last one is repeated. Default: 200 and `{}`. */
  answer(...answers: readonly (HookAnswer | ((event: JsonObject) => HookAnswer))[]): void;
}

const secret = hookSecret('s');

/** Starts a server for hooks. */
export async function startHookServer(test: Pick<typeof t, 'teardown'>): Promise<HookServer> {
  const requests: HookRequest[] = [];
  let answers: readonly (HookAnswer | ((event: JsonObject) => HookAnswer))[] = [{ body: {} }];

  async function reply(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const event = JSON.parse(body) as JsonObject; // hooks send objects
    requests.push({ body, event, headers: request.headers });
    const [next = {}, ...rest] = answers;
    if (rest.length > 0) answers = rest;
    const { status = 200, headers, body: sent } = typeof next === 'function' ? next(event) : next;
    const isText = typeof sent === 'string' || sent === undefined;
    response.writeHead(status, { ...(!isText && { 'content-type': 'application/json' }), ...headers });
    response.end(isText ? sent : JSON.stringify(sent));
  }

  const { port } = await startWebServer(test, (request, response) => void reply(request, response));
  const url = `http://127.0.0.1:${port}/hook`;
  return {
    url,
    requests,
    last() {
      const request = requests.at(-1);
      if (request === undefined) throw new Error('the hook was not called');
      return request.event;
    },
    variables: (...names) =>
      Object.fromEntries(
        names.flatMap((name) => [
          [`HOOK_${name}_ENABLED`, 'true'],
          [`HOOK_${name}_URI`, url],
          [`HOOK_${name}_SECRETS`, secret.text],
        ]),
      ),
    answer(...next) {
      answers = next;
    },
  };
}

/** The signature of a request by Standard Webhooks. */
export function expectedSignature({ headers, body }: HookRequest, { key }: HookSecret): string {
  const content = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
