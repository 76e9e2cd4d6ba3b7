import { createLogger } from '@tollgate/kit/logger';
import { StartReport } from '@tollgate/kit/start-report';
import { type FakeClock, fakeClock } from '@tollgate/testkit/fake-clock';
import type t from 'tap';
import { buildApp } from '../../src/app/app.ts';
import { readSettings, type Settings, settingsSpec } from '../../src/config/settings.ts';
import { checkDocumented } from './documented-responses.ts';
import { requireGotrueHashes, testDatabase } from './test-database.ts';

/** A running server with its own database. */
export interface AuthServer {
  readonly url: string;
  readonly databaseUrl: string;
  /** Ports of ext_authz. */
  readonly extAuthz: { readonly grpc: number; readonly http: number };
  readonly clock: FakeClock;
  /** Its log so far. */
  logs(): string;
  /** Stops the server before the end of the test. */
  stop(): Promise<unknown>;
  /** Sends a request and reads the response. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
}

interface CallOptions {
  readonly body?: unknown;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Empty if the response is not JSON. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** A signed-in user. */
export interface SignedIn {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly userId: string;
}

/** The JWT secret of test servers. */
export const jwtSecret = 'a secret for tests, long enough for HS256';

/**
 * Starts a server on a free port, with users confirmed at once, unless the variables (without
 * `SVC_`) say otherwise.
 */
export async function startAuthServer(
  test: Pick<typeof t, 'name' | 'teardown'>,
  variables: Readonly<Record<string, string>> = {},
): Promise<AuthServer> {
  const database = await testDatabase(test);
  const { DB_DATABASE_URL: databaseUrl = database.url } = variables;
  if (variables.DB_SHARED_WITH_GOTRUE === 'true') requireGotrueHashes(databaseUrl);
  const clock = fakeClock(Date.now());
  const lines: string[] = [];
  const env = toEnvironment(serverVariables({ ...variables, DB_DATABASE_URL: databaseUrl }));
  const report = new StartReport({ service: 'auth', version: '0.0.0', spec: settingsSpec, sources: { env } });
  const logger = createLogger({
    level: 'debug',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
    onLine: report.readLine,
  });
  const app = await buildApp(parseVariables(env), { logger, nowMs: clock.nowMs, report });
  await app.lifecycle.start();
  // Runs before the database is dropped: teardowns are last in, first out.
  test.teardown(() => app.lifecycle.stop('test is over'));
  const url = `http://127.0.0.1:${app.ports.http}`;
  return {
    url,
    databaseUrl,
    extAuthz: { grpc: app.ports.extAuthzGrpc ?? 0, http: app.ports.extAuthzHttp ?? 0 },
    clock,
    logs: () => lines.join(''),
    stop: () => app.lifecycle.stop('stopped by the test'),
    call: async (method, path, options) => {
      const answer = await callServer(url, method, path, options);
      if (isJson(answer)) checkDocumented(method, path, answer);
      return answer;
    },
  };
}

/** Settings of test servers by names without prefix. */
export function serverVariables(
  own: Readonly<Record<string, string>> & { readonly DB_DATABASE_URL: string },
): Readonly<Record<string, string>> & { readonly DB_DATABASE_URL: string } {
  return {
    SITE_URL: 'https://example.com',
    API_EXTERNAL_URL: 'http://localhost:9999',
    API_HOST: '127.0.0.1',
    EXT_AUTHZ_GRPC_PORT: '0',
    EXT_AUTHZ_HTTP_PORT: '0',
    DB_DRIVER: 'postgres',
    JWT_SECRET: jwtSecret,
    SMTP_ADMIN_EMAIL: 'auth@example.com',
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: '2525',
    MAILER_AUTOCONFIRM: 'true',
    EXTERNAL_PHONE_ENABLED: 'true',
    SMS_AUTOCONFIRM: 'true',
    ...own,
  };
}

function toEnvironment(own: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const variableOf = (name: string): string =>
    /^(?:OTEL_|LOG_|KUBERNETES_|DEBUG$)/.test(name) ? name : `SVC_${name}`;
  const env = Object.fromEntries(Object.entries(own).map(([name, value]) => [variableOf(name), value]));
  return { ...env, PORT: '0' };
}

function parseVariables(env: Readonly<Record<string, string>>): Settings {
  const read = readSettings(env);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.settings;
}

/** Sends a request to a server and reads the response. */
export async function callServer(
  serverUrl: string,
  method: string,
  path: string,
  { body, token, headers }: CallOptions = {},
): Promise<Answer> {
  const response = await fetch(`${serverUrl}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  // A response to HEAD has the content type of JSON and no body.
  const json = isJson({ headers: response.headers, text }) ? JSON.parse(text) : {};
  return { status: response.status, headers: response.headers, body: json, text };
}

function isJson({ headers, text }: Pick<Answer, 'headers' | 'text'>): boolean {
  return text !== '' && (headers.get('content-type')?.startsWith('application/json') ?? false);
}

/** Signs up a user. Throws if the response has no session. */
export async function signUp(
  server: Pick<AuthServer, 'call'>,
  user: Readonly<Record<string, unknown>> = {},
): Promise<SignedIn> {
  const answer = await server.call('POST', '/signup', {
    body: { email: 'ada@example.com', password: 'correct horse', ...user },
  });
  return signedIn(answer);
}

/** Reads the session of a response. Throws if it has none. */
export function signedIn({ status, text, body }: Answer): SignedIn {
  if (status !== 200 || typeof body.access_token !== 'string')
    throw new Error(`no session: ${status} ${text}`);
  // Parsed boundary: the form of a session, as the tests of the client library prove.
  const session = body as { access_token: string; refresh_token: string; user: { id: string } };
  return { accessToken: session.access_token, refreshToken: session.refresh_token, userId: session.user.id };
}
