import type { BaseContext } from '../context.ts';
import type { DpopProofs } from '../dpop/proofs.ts';
import type { CheckExplainer } from '../ext-authz/explain.ts';
import type { KnownCaller } from '../ext-authz/identity-headers.ts';
import type { IssuerReport } from '../ext-authz/issuer-report.ts';
import type { HookCaller } from '../hooks/caller.ts';
import type { Issuers } from '../issuers/issuers.ts';
import type { TokenCache } from '../keys/jwt.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { AdminKeyLimit } from '../limits/wrong-keys.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Mailer } from '../messages/mailer.ts';
import type { SmsGateway } from '../messages/sms-gateway.ts';
import type { ClientDocuments } from '../oauth/client-documents.ts';
import type { LeakedPasswords } from '../passwords/leaked-passwords.ts';
import type { PasswordHasher } from '../passwords/passwords.ts';
import type { ProviderConnections } from '../providers/connections.ts';
import type { Store } from './store.ts';

/** Everything that functions of the service share. Folders below this one take their part of it. */
export interface Context extends BaseContext {
  readonly store: Store;
  readonly passwords: PasswordHasher;
  readonly leakedPasswords: LeakedPasswords;
  readonly limiter: Limiter;
  readonly dpop: DpopProofs;
  readonly adminKeyLimit: AdminKeyLimit;
  readonly keys: SigningKeys;
  readonly providers: ProviderConnections;
  readonly clientDocuments: ClientDocuments;
  /** Verified access tokens. */
  readonly tokens: TokenCache;
  readonly mailer: Pick<Mailer, 'send' | 'sendNothing'>;
  /** Development mode without SMTP_HOST only. */
  readonly mailbox: Mailbox | undefined;
  readonly sms: SmsGateway;
  /** Issuers whose assertions are accepted, once external authorization is composed. */
  readonly issuers: { current: Issuers<KnownCaller> | undefined };
  /** Describes those issuers, once external authorization is composed. */
  readonly issuerReport: { current: IssuerReport | undefined };
  /** Explains checks, once external authorization is composed. */
  readonly explain: { current: CheckExplainer | undefined };
  readonly hooks: Pick<HookCaller, 'enabled' | 'call'>;
}
