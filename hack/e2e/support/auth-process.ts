import { startPostgres } from '@tollgate/testkit/postgres';
import { serviceKey } from '@tollgate/testkit/service-key';
import { freePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import { type RestartableProcess, startRestartable } from './restartable-process.ts';
import { startService } from './start-service.ts';

/** An auth server that a test started. */
export interface AuthProcess extends RestartableProcess {
  /** Of its API, without a slash at the end. */
  readonly url: string;
  /** Of its gRPC server for Envoy. */
  readonly extAuthzPort: number;
  /** Creates a user who has signed in. */
  signUp(email: string): Promise<SignedIn>;
  /** Changes a user as an administrator does. */
  change(userId: string, changes: Readonly<Record<string, unknown>>): Promise<void>;
  /** Ends the session of a token. */
  signOut(accessToken: string): Promise<void>;
}

/** Somebody who has signed in. */
interface SignedIn {
  readonly userId: string;
  readonly accessToken: string;
}

const jwtSecret = 'a secret of the end-to-end suite alone';

/** Migrations take a second; a machine with other work is given more. */
const answerTimeoutMs = 20_000;

/** Starts a PostgreSQL with an empty database, and resolves to its URL. It is stopped when the test ends. */
export async function startAuthDatabase(t: Test): Promise<string> {
  const server = await startPostgres();
  t.teardown(() => server.stop());
  return (await server.createDatabase()).url;
}

/** Starts services/auth, which makes its schema where there is none. It is stopped when the test ends. */
export async function startAuth(
  t: Test,
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<AuthProcess> {
  const [http, grpc] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${http}`;
  const server = await startRestartable(() =>
    startService(
      'auth',
      {
        PORT: String(http),
        SVC_API_HOST: '127.0.0.1',
        SVC_API_EXTERNAL_URL: url,
        SVC_SITE_URL: 'https://example.com',
        SVC_DB_DRIVER: 'postgres',
        SVC_DB_DATABASE_URL: databaseUrl,
        SVC_JWT_SECRET: jwtSecret,
        SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
        SVC_SMTP_HOST: '127.0.0.1',
        SVC_SMTP_PORT: '2525',
        SVC_MAILER_AUTOCONFIRM: 'true',
        SVC_EXT_AUTHZ_GRPC_PORT: String(grpc),
        // Envoy asks over gRPC.
        SVC_EXT_AUTHZ_HTTP_PORT: '0',
        LOG_LEVEL: 'warn',
        ...settings,
      },
      `${url}/ready`,
    ),
  );
  t.teardown(server.stop);

  /** Sends a request; anything but success is an error of the test. */
  async function call(
    method: string,
    path: string,
    { token, body }: { readonly token: string | undefined; readonly body?: unknown },
  ): Promise<unknown> {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(answerTimeoutMs),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  return {
    ...server,
    url,
    extAuthzPort: grpc,
    async signUp(email) {
      const body = { email, password: 'correct horse battery' };
      // Parsed boundary: the service's own JSON, of which two fields are looked at.
      const answer = (await call('POST', '/signup', { token: undefined, body })) as {
        access_token: string;
        user: { id: string };
      };
      return { userId: answer.user.id, accessToken: answer.access_token };
    },
    async change(userId, changes) {
      await call('PUT', `/admin/users/${userId}`, { token: serviceKey(jwtSecret), body: changes });
    },
    async signOut(accessToken) {
      await call('POST', '/logout', { token: accessToken });
    },
  };
}
