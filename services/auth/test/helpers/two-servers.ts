import { programEnvironment, startServerProcess } from '@tollgate/testkit/processes';
import { withFreePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import { type AuthServer, callServer, serverVariables, startAuthServer } from './auth-server.ts';

/** A server that can take a step of a flow. */
type FlowServer = Pick<AuthServer, 'url' | 'call'> & {
  readonly clock: Pick<AuthServer['clock'], 'nowMs'>;
};

/** The server of the next step. */
export type NextServer = () => FlowServer;

/** A flow whose steps may reach either of two servers. `email` is unused before. */
export type Flow = (t: Test, next: NextServer, email: string) => Promise<void>;

export interface ServerPair {
  readonly own: AuthServer;
  /** The program that `GOTRUE_BINARY` names, or another server of Tollgate. */
  readonly second: FlowServer;
  readonly hasGotrue: boolean;
}

/** Starts two servers on one database, as in a canary. `variables` are names without prefix. */
export async function startServerPair(
  t: Test,
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerPair> {
  const own = await startAuthServer(t, {
    JWT_AUD: 'authenticated',
    MAILER_OTP_EXP: '3600',
    ...variables,
    DB_SHARED_WITH_GOTRUE: 'true',
  });
  const secondVariables = {
    JWT_AUD: 'authenticated',
    MAILER_OTP_EXP: '3600',
    SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: '2',
    ...variables,
    DB_DATABASE_URL: own.databaseUrl,
  };
  const binary = process.env.GOTRUE_BINARY ?? '';
  if (binary !== '') return { own, second: await startGotrue(t, binary, secondVariables), hasGotrue: true };
  t.comment('GOTRUE_BINARY is not set: both servers are Tollgate');
  const second = await startAuthServer(t, { ...secondVariables, DB_SHARED_WITH_GOTRUE: 'true' });
  return { own, second, hasGotrue: false };
}

/** Runs each flow twice: the first step is that of one server, then that of the other. */
export async function runInTurns(
  t: Test,
  { own, second }: ServerPair,
  flows: Readonly<Record<string, Flow>>,
): Promise<void> {
  for (const [name, flow] of Object.entries(flows))
    for (const [first, other] of [
      [own, second],
      [second, own],
    ] as const) {
      let step = 0;
      const next = () => (step++ % 2 === 0 ? first : other);
      const email = `${crypto.randomUUID()}@example.com`;
      await t.test(`${name}, beginning at ${first === own ? 'this' : 'the second'} server`, (t) =>
        flow(t, next, email),
      );
    }
}

/** Variables that GoTrue reads without its prefix. */
const unprefixed = ['API_EXTERNAL_URL', 'DATABASE_URL', 'DB_NAMESPACE', 'PORT'];

/**
 * Starts the program of GoTrue on a free port of loopback, with the settings of a test server. The
 * subcommand `serve` does not migrate: the schema is that of Tollgate, which has all tables.
 */
async function startGotrue(
  t: Pick<Test, 'teardown'>,
  binary: string,
  variables: Readonly<Record<string, string>> & { readonly DB_DATABASE_URL: string },
): Promise<FlowServer> {
  const { DB_DATABASE_URL: databaseUrl, ...settings } = serverVariables(variables);
  return withFreePort(async (port) => {
    const own = {
      ...settings,
      DATABASE_URL: databaseUrl,
      DB_NAMESPACE: 'auth',
      PORT: String(port),
      LOG_LEVEL: 'info',
    };
    const env = Object.entries(own).map(([name, value]) => [
      unprefixed.includes(name) ? name : `GOTRUE_${name}`,
      value,
    ]);
    const url = `http://127.0.0.1:${port}`;
    const server = await startServerProcess({
      command: binary,
      args: ['serve'],
      env: programEnvironment(Object.fromEntries(env)),
      ready: async () => {
        const { status } = await fetch(`${url}/health`);
        if (status !== 200) throw new Error(`GET /health responded with ${status}`);
      },
    });
    t.teardown(() => server.stop());
    return { url, clock: { nowMs: Date.now }, call: (...request) => callServer(url, ...request) };
  });
}
