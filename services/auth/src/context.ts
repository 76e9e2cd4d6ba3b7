import type { Logger } from '@tollgate/kit/logger';
import type { Store } from './app/store.ts';
import type { Settings } from './config/settings.ts';
import type { HookCaller } from './hooks/caller.ts';
import type { TokenCache } from './keys/jwt.ts';
import type { Randomness } from './keys/secrets.ts';
import type { SigningKeys } from './keys/signing-keys.ts';
import type { Limiter } from './limits/limiter.ts';
import type { Mailbox } from './messages/mailbox.ts';
import type { Mailer } from './messages/mailer.ts';
import type { SmsGateway } from './messages/sms.ts';
import type { Metrics } from './metrics.ts';
import type { LeakedPasswords } from './passwords/leaked-passwords.ts';
import type { PasswordHasher } from './passwords/passwords.ts';
import type { ProviderConnections } from './providers/connections.ts';
import type { Background } from './work-queue.ts';

/** Parts that the functions of the service share: settings, storage, adapters and the clock. */
export interface Context {
  readonly settings: Settings;
  readonly store: Store;
  readonly passwords: PasswordHasher;
  readonly leakedPasswords: LeakedPasswords;
  readonly limiter: Limiter;
  readonly keys: SigningKeys;
  readonly providers: ProviderConnections;
  /** Verified access tokens. */
  readonly tokens: TokenCache;
  readonly random: Randomness;
  readonly mailer: Pick<Mailer, 'send' | 'sendNothing'>;
  readonly background: Pick<Background, 'run'>;
  /** Development mode without SMTP_HOST only. */
  readonly mailbox: Mailbox | undefined;
  readonly sms: SmsGateway;
  readonly hooks: Pick<HookCaller, 'enabled' | 'call'>;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}
