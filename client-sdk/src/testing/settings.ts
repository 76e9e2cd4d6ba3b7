import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import type { SigningKey, TestGrant, TokenLedger } from './tokens.ts';

/** A registered client. Without secret and `verifyAssertion` it is public. */
export interface TestClient {
  readonly clientId: string;
  readonly clientSecret?: string;
  /** Compared exactly. Default: every redirect URI is accepted. */
  readonly redirectUris?: readonly string[];
  /** Rejects a code flow without PKCE. Default false. */
  readonly requirePkce?: boolean;
  /** Verifies the `client_assertion` of this client (RFC 7523 §2.2), including its signature. */
  readonly verifyAssertion?: (assertion: string) => boolean | Promise<boolean>;
}

/** A user of the test server. */
export interface TestUser {
  readonly username: string;
  readonly password: string;
  /** Default: the user name. */
  readonly subject?: string;
  /** Further claims for the ID token, for example `email`. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** Settings of `createAuthorizationServer`; all are optional. */
export interface AuthorizationServerOptions {
  /** Base of all endpoints. Default `https://as.test`. */
  issuer?: string;
  /** Default: one confidential client `client` with the secret `secret`. */
  clients?: readonly TestClient[];
  /** Default: one user `user` with the password `password`. */
  users?: readonly TestUser[];
  /** `expires_in` of access tokens. Default 3600. */
  accessTokenTtlSeconds?: number;
  /** Default 86400. */
  refreshTokenTtlSeconds?: number;
  /** Default 60. */
  codeTtlSeconds?: number;
  /** Default 600. */
  deviceCodeTtlSeconds?: number;
  /** `interval` of the device flow. Default 5. */
  deviceIntervalSeconds?: number;
  /** Whether a refresh gives a new refresh token and spends the old one. Default true. */
  rotateRefreshTokens?: boolean;
  /**
   * Whether reuse of a spent refresh token revokes all tokens of its grant (RFC 9700 §4.14.2).
   * Default true.
   */
  detectReuse?: boolean;
  /** The clock that `advance` moves, in epoch seconds. Default: from `Date`. */
  now?: () => number;
}

/** The settings with their defaults. */
export interface ServerSettings {
  readonly issuer: string;
  readonly clients: ReadonlyMap<string, TestClient>;
  readonly users: readonly TestUser[];
  readonly accessTokenTtlSeconds: number;
  readonly refreshTokenTtlSeconds: number;
  readonly codeTtlSeconds: number;
  readonly deviceCodeTtlSeconds: number;
  readonly deviceIntervalSeconds: number;
  readonly rotateRefreshTokens: boolean;
  readonly detectReuse: boolean;
}

const optionNames: OptionNames<AuthorizationServerOptions> = {
  ...{ issuer: 1, clients: 1, users: 1, accessTokenTtlSeconds: 1, refreshTokenTtlSeconds: 1 },
  ...{ codeTtlSeconds: 1, deviceCodeTtlSeconds: 1, deviceIntervalSeconds: 1 },
  ...{ rotateRefreshTokens: 1, detectReuse: 1, now: 1 },
};
const clientNames: OptionNames<TestClient> = {
  ...{ clientId: 1, clientSecret: 1, redirectUris: 1, requirePkce: 1, verifyAssertion: 1 },
};
const userNames: OptionNames<TestUser> = { username: 1, password: 1, subject: 1, claims: 1 };

export function resolveSettings(options: AuthorizationServerOptions): ServerSettings {
  assertKnownOptions('createAuthorizationServer', options, optionNames);
  for (const client of options.clients ?? []) assertKnownOptions('a client', client, clientNames);
  for (const user of options.users ?? []) assertKnownOptions('a user', user, userNames);
  const clients = options.clients ?? [{ clientId: 'client', clientSecret: 'secret' }];
  return {
    issuer: options.issuer ?? 'https://as.test',
    clients: new Map(clients.map((client) => [client.clientId, client])),
    users: options.users ?? [{ username: 'user', password: 'password' }],
    accessTokenTtlSeconds: options.accessTokenTtlSeconds ?? 3600,
    refreshTokenTtlSeconds: options.refreshTokenTtlSeconds ?? 86_400,
    codeTtlSeconds: options.codeTtlSeconds ?? 60,
    deviceCodeTtlSeconds: options.deviceCodeTtlSeconds ?? 600,
    deviceIntervalSeconds: options.deviceIntervalSeconds ?? 5,
    rotateRefreshTokens: options.rotateRefreshTokens ?? true,
    detectReuse: options.detectReuse ?? true,
  };
}

/** An error response of the test server. */
export class ProtocolError extends Error {
  override name = 'ProtocolError';
  readonly code: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  /** `code` is the `error`, `description` its `error_description`; the default status is 400. */
  constructor(code: string, description: string, status = 400, headers: Record<string, string> = {}) {
    super(description);
    this.code = code;
    this.status = status;
    this.headers = headers;
  }

  /** The response as in RFC 6749 §5.2. */
  toResponse(): Response {
    return Response.json(
      { error: this.code, error_description: this.message },
      { status: this.status, headers: { 'cache-control': 'no-store', ...this.headers } },
    );
  }
}

/** A code that has been issued. */
export interface PendingCode {
  readonly grant: TestGrant;
  readonly redirectUri: string | null;
  readonly challenge?: { readonly value: string; readonly method: string };
  readonly expiresAt: number;
  used: boolean;
}

/** A device that polls for its user's decision. */
interface PendingDevice {
  readonly clientId: string;
  readonly scope: string;
  readonly userCode: string;
  readonly expiresAt: number;
  lastPolledAt: number | undefined;
  intervalSeconds: number;
  decision: { readonly subject: string } | 'denied' | 'pending';
}

/** The state of a test server. */
export interface ServerContext {
  readonly settings: ServerSettings;
  readonly ledger: TokenLedger;
  readonly codes: Map<string, PendingCode>;
  readonly devices: Map<string, PendingDevice>;
  readonly signingKey: () => Promise<SigningKey>;
  /** Epoch seconds. */
  now(): number;
}

/** A request to an endpoint, with its parameters from query and body. */
export interface EndpointRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly params: URLSearchParams;
}

/** Handles a token request of a grant. */
export type GrantHandler = (
  context: ServerContext,
  client: TestClient,
  params: URLSearchParams,
) => Promise<GrantOutcome> | GrantOutcome;

/** The grant to issue tokens for, or an error. */
export type GrantOutcome =
  | { readonly ok: true; readonly grant: TestGrant; readonly withRefreshToken: boolean }
  | { readonly ok: false; readonly error: ProtocolError };
