import { freePort } from '@tollgate/testkit/tcp';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Test } from 'tap';
import { counterApiDocument } from '../../src/operator-api/open-api.ts';
import { operations } from '../../src/operator-api/operations.ts';
import { type StartAppOptions, type StartedApp, startApp } from './start-app.ts';

export const adminToken = 'a-token-of-the-tests';

const hourMs = 3_600_000;
const startMs = Date.now();

/** A clock that begins with an hour, so that windows do not end during a test. */
export function nowMs(): number {
  return Date.now() - (startMs % hourMs);
}

type Json = Record<string, unknown>;

interface Reply {
  readonly status: number;
  readonly json: Json;
}

export interface CounterApi extends StartedApp {
  readonly base: string;
  /** Calls the counter API; POST with a body, else GET. */
  call(path: string, body?: unknown, init?: RequestInit): Promise<Reply>;
  /** The page `/explain` for such a request. */
  explain(domain: string, ...entries: readonly string[]): Promise<Json>;
  /** Sends a request to `/json`; whether it was allowed. */
  decide(domain: string, ...entries: readonly string[]): Promise<boolean>;
}

/** Starts the service with the counter API on a free port, by default at the start of an hour. */
export async function startCounterApi(t: Test, options: StartAppOptions = {}): Promise<CounterApi> {
  const port = await freePort();
  const env = {
    ADMIN_PORT: String(port),
    ADMIN_TOKEN: adminToken,
    // Requests that memcached does not answer in time are allowed, and not counted.
    MCACHE_TIMEOUT: '20s',
    ...options.env,
  };
  const app = await startApp(t, { nowMs, ...options, env });
  const base = `http://127.0.0.1:${app.ports.admin}`;
  return {
    ...app,
    base,
    async call(path, body, init = {}) {
      const method = init.method ?? (body === undefined ? 'GET' : 'POST');
      const response = await fetch(base + path, {
        method,
        headers: { authorization: `Bearer ${adminToken}` },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...init,
      });
      // Parsed boundary: replies are JSON objects.
      const json = (await response.json()) as Json;
      checkDocumented(method, path, { status: response.status, json });
      return { status: response.status, json };
    },
    async explain(domain, ...entries) {
      const response = await fetch(`http://127.0.0.1:${app.ports.debug}/explain`, {
        method: 'POST',
        headers: { accept: 'application/json' },
        body: JSON.stringify({ domain, descriptors: descriptors(...entries) }),
      });
      // Parsed boundary: the same.
      return (await response.json()) as Json;
    },
    async decide(domain, ...entries) {
      const response = await fetch(`http://127.0.0.1:${app.ports.http}/json`, {
        method: 'POST',
        body: JSON.stringify({ domain, descriptors: descriptors(...entries) }),
      });
      await response.text();
      return response.status === 200;
    },
  };
}

/** Descriptors of one entry each: `key=value`. */
export function descriptors(...entries: readonly string[]) {
  return entries.map((entry) => {
    const [key = '', value = ''] = entry.split('=');
    return { entries: [{ key, value }] };
  });
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ $id: 'document', ...counterApiDocument() });

/** @throws Error if a response is not that of the OpenAPI document. */
function checkDocumented(method: string, path: string, { status, json }: Reply): void {
  const route = Object.values(operations).find(
    (operation) => operation.method === method && operation.path === path.split('?')[0],
  );
  const schema = status === 200 ? route?.response : 'Error';
  if (schema !== undefined && !ajv.validate(`document#/components/schemas/${schema}`, json))
    throw new Error(`the response of ${method} ${path} is not that of the document: ${ajv.errorsText()}`);
}
