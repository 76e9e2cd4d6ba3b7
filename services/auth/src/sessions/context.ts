import type { DpopProofs } from '../dpop/proofs.ts';
import type { HooksContext } from '../hooks/hooks.ts';
import type { TokenCache } from '../keys/jwt.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { UsersContext } from '../users/save-user.ts';
import type { AuthenticationStore } from './authentication-store.ts';
import type { RefreshTokenStore } from './refresh-store.ts';
import type { SessionStore } from './store.ts';

export type SessionsContext = UsersContext &
  HooksContext & {
    readonly store: {
      readonly sessions: SessionStore;
      readonly refreshTokens: RefreshTokenStore;
      readonly authentications: AuthenticationStore;
    };
    readonly limiter: Limiter;
    readonly dpop: DpopProofs;
    readonly keys: SigningKeys;
    /** Verified access tokens. */
    readonly tokens: TokenCache;
  };
