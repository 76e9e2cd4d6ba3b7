import type { Logger } from '@tollgate/kit/logger';
import type { Background } from './ports/background.ts';
import type { LeakedPasswords } from './ports/leaked-passwords.ts';
import type { Mailbox } from './ports/mailbox.ts';
import type { Mailer } from './ports/mailer.ts';
import type { PasswordHasher } from './ports/password-hasher.ts';
import type { Randomness } from './ports/randomness.ts';
import type { SmsGateway } from './ports/sms-gateway.ts';
import type { Store } from './ports/store.ts';
import type { Settings } from './settings/settings.ts';
import type { SigningKeys } from './tokens/signing-keys.ts';

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
