import type { ProtocolError } from './protocol-error.ts';
import type { ServerSettings, TestClient } from './settings.ts';
import type { SigningKey } from './signing-key.ts';
import type { TestGrant, TokenLedger } from './token-ledger.ts';

/** A code that waits to be redeemed. */
export interface PendingCode {
  readonly grant: TestGrant;
  readonly redirectUri: string | null;
  readonly challenge?: { readonly value: string; readonly method: string };
  readonly expiresAt: number;
  used: boolean;
}

/** A device that waits for its user. */
interface PendingDevice {
  readonly clientId: string;
  readonly scope: string;
  readonly userCode: string;
  readonly expiresAt: number;
  lastPolledAt: number | undefined;
  intervalSeconds: number;
  decision: { readonly subject: string } | 'denied' | 'pending';
}

/** What the endpoints of one test server share. */
export interface ServerContext {
  readonly settings: ServerSettings;
  readonly ledger: TokenLedger;
  readonly codes: Map<string, PendingCode>;
  readonly devices: Map<string, PendingDevice>;
  readonly signingKey: () => Promise<SigningKey>;
  /** Epoch seconds. */
  now(): number;
}

/** A request to an endpoint: what its parameters are, wherever they were sent. */
export interface EndpointRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly params: URLSearchParams;
}

/** Exchanges what the client shows for a grant, and says whether a refresh token goes with it. */
export type GrantHandler = (
  context: ServerContext,
  client: TestClient,
  params: URLSearchParams,
) => Promise<GrantOutcome> | GrantOutcome;

/** The grant to issue tokens for, or why not. */
export type GrantOutcome =
  | { readonly ok: true; readonly grant: TestGrant; readonly withRefreshToken: boolean }
  | { readonly ok: false; readonly error: ProtocolError };
