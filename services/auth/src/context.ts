import type { Logger } from '@tollgate/kit/logger';
import type { Settings } from './config/settings.ts';
import type { Store } from './db/store.ts';
import type { Randomness } from './keys/random.ts';
import type { SigningKeys } from './keys/signing-keys.ts';
import type { Background } from './messages/background.ts';
import type { Mailbox } from './messages/mailbox.ts';
import type { Mailer } from './messages/mailer.ts';
import type { SmsGateway } from './messages/sms.ts';
import type { PasswordHasher } from './passwords/hasher.ts';
import type { LeakedPasswords } from './passwords/leaked.ts';

/**
 * What use cases and surfaces are given: each asks for the part it needs, `Pick<Services, 'store' | 'random'>`, and of the settings
 * for single ones (`DepsWith`).
 */
export interface Services {
  readonly settings: Settings;
  readonly store: Store;
  readonly passwords: PasswordHasher;
  readonly leakedPasswords: LeakedPasswords;
  readonly keys: SigningKeys;
  readonly random: Randomness;
  readonly mailer: Mailer;
  readonly background: Background;
  /** In development mode without SMTP_HOST. */
  readonly mailbox: Mailbox | undefined;
  readonly sms: SmsGateway;
  readonly logger: Logger;
}

/** Some services, and some settings: `DepsWith<'store' | 'random', 'jwtExpMs'>`. */
export type DepsWith<S extends Exclude<keyof Services, 'settings'>, K extends keyof Settings> = Pick<
  Services,
  S
> & { readonly settings: Pick<Settings, K> };
