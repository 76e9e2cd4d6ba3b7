import { encodeBase64Url } from '../encoding.ts';
import type { ServerSettings } from './settings.ts';

/** The grant that tokens are issued for and revoked with. */
export interface TestGrant {
  readonly clientId: string;
  readonly subject: string;
  readonly scope: string;
  readonly nonce?: string;
  revoked: boolean;
}

/** An issued token. `expiresAt` is in epoch seconds. */
interface IssuedToken {
  readonly kind: 'access_token' | 'refresh_token';
  readonly value: string;
  readonly grant: TestGrant;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** A refresh token that was exchanged for its successor. */
  spent: boolean;
  revoked: boolean;
}

/** All tokens that the server has issued. */
export class TokenLedger {
  readonly #settings: ServerSettings;
  readonly #now: () => number;
  readonly #tokens = new Map<string, IssuedToken>();

  constructor(settings: ServerSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  issueAccessToken(grant: TestGrant): IssuedToken {
    return this.#issue('access_token', grant, this.#settings.accessTokenTtlSeconds);
  }

  issueRefreshToken(grant: TestGrant): IssuedToken {
    return this.#issue('refresh_token', grant, this.#settings.refreshTokenTtlSeconds);
  }

  find(value: string): IssuedToken | undefined {
    return this.#tokens.get(value);
  }

  /** A token that is neither expired, spent nor revoked, and whose grant is not revoked. */
  findActive(value: string): IssuedToken | undefined {
    const token = this.#tokens.get(value);
    if (token === undefined || token.spent || token.revoked || token.grant.revoked) return undefined;
    return token.expiresAt > this.#now() ? token : undefined;
  }

  /** A refresh token is revoked with its grant. */
  revoke(token: IssuedToken): void {
    token.revoked = true;
    if (token.kind === 'refresh_token') token.grant.revoked = true;
  }

  #issue(kind: IssuedToken['kind'], grant: TestGrant, ttlSeconds: number): IssuedToken {
    const issuedAt = Math.floor(this.#now());
    const prefix = kind === 'access_token' ? 'at' : 'rt';
    const value = `${prefix}-${this.#tokens.size + 1}-${crypto.randomUUID()}`;
    const token: IssuedToken = {
      ...{ kind, value, grant, issuedAt, expiresAt: issuedAt + ttlSeconds },
      ...{ spent: false, revoked: false },
    };
    this.#tokens.set(value, token);
    return token;
  }
}

/** Signs JWTs. */
export interface SigningKey {
  /** Public JWK with `kid`, `alg` and `use`. */
  readonly publicJwk: Readonly<Record<string, unknown>>;
  /** A compact JWS (RFC 7515 §7.1). */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256' } as const;

/** Generates an ES256 key. */
export async function generateSigningKey(): Promise<SigningKey> {
  const { publicKey, privateKey } = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const kid = crypto.randomUUID();
  const publicJwk = {
    ...(await crypto.subtle.exportKey('jwk', publicKey)),
    ...{ kid, alg: 'ES256', use: 'sig' },
  };
  return {
    publicJwk,
    async sign(claims) {
      const input = `${encodeJson({ alg: 'ES256', typ: 'JWT', kid })}.${encodeJson(claims)}`;
      const bytes = new TextEncoder().encode(input);
      const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, bytes);
      return `${input}.${encodeBase64Url(new Uint8Array(signature))}`;
    },
  };
}

function encodeJson(value: unknown): string {
  return encodeBase64Url(JSON.stringify(value));
}
