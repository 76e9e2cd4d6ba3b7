import { randomUUID } from 'node:crypto';
import type { Asker } from './closed-loop.ts';
import { type HttpAnswer, type HttpConnection, openHttpConnection, requestBytes } from './http-connection.ts';

/** Something that clients do, over and over. */
export interface Scenario {
  readonly name: string;
  /** Connections that ask at the same time. */
  readonly connections: number;
  /** Makes one who asks, over a connection of their own. */
  createAsker(connection: HttpConnection): Promise<Asker>;
}

const password = 'correct horse battery';

/** Every asker has signed up as a user of their own. */
export const scenarios = {
  health: asking('GET /health', '/health'),
  jwks: asking('GET /.well-known/jwks.json', '/.well-known/jwks.json'),
  user: {
    name: 'GET /user',
    connections: 16,
    async createAsker(connection) {
      const { access_token: token } = await signUp(connection);
      return repeat(connection, requestBytes('GET', '/user', { token }));
    },
  },
  refresh: {
    name: 'POST /token, refresh',
    connections: 16,
    async createAsker(connection) {
      let { refresh_token } = await signUp(connection);
      return async () => {
        const body = { refresh_token };
        const request = requestBytes('POST', '/token?grant_type=refresh_token', { body });
        ({ refresh_token } = sessionOf(await connection.ask(request)));
      };
    },
  },
  signUp: {
    name: 'POST /signup',
    connections: 4,
    createAsker: async (connection) => async () => void (await signUp(connection)),
  },
  signIn: {
    name: 'POST /token, password',
    connections: 4,
    async createAsker(connection) {
      const { user } = await signUp(connection);
      const body = { email: user.email, password };
      return repeat(connection, requestBytes('POST', '/token?grant_type=password', { body }));
    },
  },
} as const satisfies Record<string, Scenario>;

/** Opens the connections of a scenario; `close` ends them. */
export async function prepare(
  scenario: Scenario,
  port: number,
  connections: number = scenario.connections,
): Promise<{ readonly askers: readonly Asker[]; close(): void }> {
  const opened = await Promise.all(Array.from({ length: connections }, () => openHttpConnection(port)));
  // One after the other: each may hash a password, and the queue for that is bounded.
  const askers: Asker[] = [];
  for (const connection of opened) askers.push(await scenario.createAsker(connection));
  return {
    askers,
    close: () => {
      for (const connection of opened) connection.close();
    },
  };
}

function asking(name: string, path: string): Scenario {
  return {
    name,
    connections: 16,
    createAsker: async (connection) => repeat(connection, requestBytes('GET', path)),
  };
}

function repeat(connection: HttpConnection, request: Buffer): Asker {
  return async () => demandOk(await connection.ask(request));
}

interface Session {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly user: { readonly email: string };
}

async function signUp(connection: HttpConnection): Promise<Session> {
  const body = { email: `${randomUUID()}@example.com`, password };
  return sessionOf(await connection.ask(requestBytes('POST', '/signup', { body })));
}

function sessionOf(answer: HttpAnswer): Session {
  demandOk(answer);
  // Parsed boundary: the form of a session.
  return JSON.parse(answer.body) as Session;
}

function demandOk({ status, body }: HttpAnswer): void {
  if (status !== 200) throw new Error(`answered ${status}: ${body}`);
}
