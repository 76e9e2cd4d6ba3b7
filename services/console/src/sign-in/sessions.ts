import { randomBytes } from 'node:crypto';
import type { AccessToken } from '@tollgate/oauth2-client';

/** The person of a session. */
export interface Person {
  readonly id: string;
  /** Email address or phone number; the id without either. */
  readonly name: string;
}

interface Tokens {
  token: AccessToken;
  /** One refresh for all concurrent requests: refresh tokens rotate. */
  refreshing: Promise<AccessToken> | undefined;
}

/** A signed-in browser. Tokens stay on the server. */
export interface Session {
  readonly id: string;
  readonly csrfToken: string;
  readonly person: Person;
  readonly grantedScopes: ReadonlySet<string>;
  readonly createdMs: number;
  usedMs: number;
  /** Shown once by the next page. */
  notice: string | undefined;
  readonly tokens: Tokens;
}

interface SessionOptions {
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  readonly sessionMaxAgeMs: number;
}

/** Access tokens are refreshed this long before they expire. */
const refreshAheadSeconds = 30;

/**
 * Sessions in memory. A lost one costs a redirect: the auth server signs the person in again
 * without a question.
 */
export class Sessions {
  readonly #sessions = new Map<string, Session>();
  readonly #options: SessionOptions;
  readonly #nowMs: () => number;

  constructor(options: SessionOptions, nowMs: () => number) {
    this.#options = options;
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#sessions.size;
  }

  create(person: Person, token: AccessToken): Session {
    const now = this.#nowMs();
    const session: Session = {
      ...{ id: randomId(), csrfToken: randomId(), person, createdMs: now, usedMs: now, notice: undefined },
      grantedScopes: new Set(token.scope ?? []),
      tokens: { token, refreshing: undefined },
    };
    this.#sessions.set(session.id, session);
    this.#evict();
    return session;
  }

  /** Undefined when it has ended. Counts as use. */
  find(id: string): Session | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined) return undefined;
    if (this.#hasEnded(session)) {
      this.#sessions.delete(id);
      return undefined;
    }
    session.usedMs = this.#nowMs();
    // Kept in the order of use.
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    return session;
  }

  delete(id: string): void {
    this.#sessions.delete(id);
  }

  #hasEnded({ usedMs, createdMs }: Session): boolean {
    const now = this.#nowMs();
    const { sessionIdleMs, sessionMaxAgeMs } = this.#options;
    return now - usedMs > sessionIdleMs || now - createdMs > sessionMaxAgeMs;
  }

  /** Ends the sessions that have expired, and those least recently used beyond the maximum. */
  #evict(): void {
    for (const [id, session] of this.#sessions) {
      if (this.#sessions.size <= this.#options.maxSessions && !this.#hasEnded(session)) return;
      this.#sessions.delete(id);
    }
  }
}

/**
 * The access token of a session, refreshed if it is about to expire.
 *
 * @throws OAuthClientError when it cannot be refreshed
 */
export async function freshToken({ tokens }: Session): Promise<string> {
  const { token } = tokens;
  if (!token.expiresWithin(refreshAheadSeconds)) return token.token;
  tokens.refreshing ??= refresh(tokens);
  return (await tokens.refreshing).token;
}

async function refresh(tokens: Tokens): Promise<AccessToken> {
  try {
    tokens.token = await tokens.token.refresh();
    return tokens.token;
  } finally {
    tokens.refreshing = undefined;
  }
}

/** 256 random bits. */
function randomId(): string {
  return randomBytes(32).toString('base64url');
}
