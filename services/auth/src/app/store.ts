import { ImportStore } from '../admin/import/store.ts';
import { ApiKeyStateStore } from '../api-keys/state-store.ts';
import { ApiKeyStore } from '../api-keys/store.ts';
import { AuditLog } from '../audit/audit-log.ts';
import { BrowserSessionStore } from '../browser-sessions/store.ts';
import { isPool, type Queryable, query } from '../db/connection.ts';
import { EncryptedColumnStore } from '../db/encrypted-columns.ts';
import { findMissingIndexes } from '../db/indexes.ts';
import {
  describeProblems,
  schemaProblemsParameters,
  schemaProblemsQuery,
  toSchemaProblems,
  usedColumns,
} from '../db/schema.ts';
import { DpopProofStore } from '../dpop/store.ts';
import { ClientStateStore } from '../ext-authz/client-state.ts';
import { IdentityStateStore } from '../ext-authz/identity-cache.ts';
import { FlowStore } from '../flows/store.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import { LimitStore } from '../limits/store.ts';
import { Metrics } from '../metrics.ts';
import { RecoveryCodeStore } from '../mfa/recovery-code-store.ts';
import { FactorStore } from '../mfa/store.ts';
import { AuthorizationStore } from '../oauth/authorization-store.ts';
import { OAuthClientStore } from '../oauth/client-store.ts';
import { DeviceCodeStore } from '../oauth/device-store.ts';
import { PushedRequestStore } from '../oauth/pushed-store.ts';
import { OneTimeTokenStore } from '../one-time-tokens/store.ts';
import { DomainStore } from '../organizations/domain-store.ts';
import { InvitationStore } from '../organizations/invitation-store.ts';
import { OrganizationStore } from '../organizations/store.ts';
import { PasskeyStore } from '../passkeys/store.ts';
import { CustomProviderStore } from '../providers/custom-store.ts';
import { ProviderStore } from '../providers/store.ts';
import { AuthenticationStore } from '../sessions/authentication-store.ts';
import { RefreshTokenStore } from '../sessions/refresh-store.ts';
import { SessionStore } from '../sessions/store.ts';
import { UserStore } from '../users/store.ts';
import { EventStore } from '../webhooks/store.ts';
import { WebhookStore } from '../webhooks/webhook-store.ts';
import { CleanupStore } from './cleanup.ts';

/** How rows are written, and who is notified of changes. */
export interface StoreOptions {
  readonly cipher: ColumnCipher;
  /**
   * Keeps one-time tokens in the columns and the form that GoTrue reads. Default false: as digests.
   */
  readonly dbSharedWithGotrue?: boolean | undefined;
  readonly metrics?: Metrics | undefined;
  /**
   * Called after a commit with the users whose role, metadata, ban or sessions changed, and with
   * the OAuth clients and API keys that changed, all of which ext_authz caches. The database
   * notifies all replicas as well, but the response to the request may arrive sooner, and not every
   * connection pooler supports notifications.
   */
  readonly onIdentityChange?: ((ids: readonly string[]) => void) | undefined;
}

/**
 * The database. Each method of a table's store is one statement, which includes its audit entry;
 * several statements that must succeed together run in `transaction`.
 */
export class Store {
  readonly users: UserStore;
  readonly imports: ImportStore;
  readonly sessions: SessionStore;
  readonly refreshTokens: RefreshTokenStore;
  readonly authentications: AuthenticationStore;
  readonly factors: FactorStore;
  readonly passkeys: PasskeyStore;
  readonly recoveryCodes: RecoveryCodeStore;
  readonly audit: AuditLog;
  readonly oneTimeTokens: OneTimeTokenStore;
  readonly flows: FlowStore;
  readonly providers: ProviderStore;
  readonly customProviders: CustomProviderStore;
  readonly limits: LimitStore;
  readonly dpopProofs: DpopProofStore;
  readonly cleanup: CleanupStore;
  readonly encryptedColumns: EncryptedColumnStore;
  readonly identityStates: IdentityStateStore;
  readonly clientStates: ClientStateStore;
  readonly oauthClients: OAuthClientStore;
  readonly authorizations: AuthorizationStore;
  readonly deviceCodes: DeviceCodeStore;
  readonly pushedRequests: PushedRequestStore;
  readonly events: EventStore;
  readonly webhooks: WebhookStore;
  readonly organizations: OrganizationStore;
  readonly invitations: InvitationStore;
  readonly apiKeys: ApiKeyStore;
  readonly apiKeyStates: ApiKeyStateStore;
  readonly domains: DomainStore;
  readonly browserSessions: BrowserSessionStore;
  readonly #sql: Queryable;
  readonly #options: StoreOptions;

  constructor(sql: Queryable, options: StoreOptions) {
    const { cipher, dbSharedWithGotrue = false, metrics = new Metrics(), onIdentityChange } = options;
    const onChange = onIdentityChange && ((id: string) => onIdentityChange([id]));
    this.#sql = sql;
    this.#options = { ...options, metrics };
    this.users = new UserStore(sql, cipher, onChange);
    this.imports = new ImportStore(sql, cipher);
    this.sessions = new SessionStore(sql, cipher, onChange);
    this.refreshTokens = new RefreshTokenStore(sql, cipher);
    this.authentications = new AuthenticationStore(sql);
    this.factors = new FactorStore(sql, cipher, onChange);
    this.passkeys = new PasskeyStore(sql);
    this.recoveryCodes = new RecoveryCodeStore(sql, cipher, onChange);
    this.audit = new AuditLog(sql);
    this.oneTimeTokens = new OneTimeTokenStore(sql, { sharedWithGotrue: dbSharedWithGotrue });
    this.flows = new FlowStore(sql);
    this.providers = new ProviderStore(sql);
    this.customProviders = new CustomProviderStore(sql, cipher);
    this.limits = new LimitStore(sql, metrics);
    this.dpopProofs = new DpopProofStore(sql);
    this.cleanup = new CleanupStore(sql);
    this.encryptedColumns = new EncryptedColumnStore(sql, cipher);
    this.identityStates = new IdentityStateStore(sql);
    this.clientStates = new ClientStateStore(sql);
    this.oauthClients = new OAuthClientStore(sql, onChange);
    this.authorizations = new AuthorizationStore(sql, onChange);
    this.deviceCodes = new DeviceCodeStore(sql);
    this.pushedRequests = new PushedRequestStore(sql);
    this.events = new EventStore(sql);
    this.webhooks = new WebhookStore(sql, cipher);
    this.invitations = new InvitationStore(sql);
    this.organizations = new OrganizationStore(sql, onIdentityChange);
    this.apiKeys = new ApiKeyStore(sql, onChange);
    this.apiKeyStates = new ApiKeyStateStore(sql);
    this.domains = new DomainStore(sql);
    this.browserSessions = new BrowserSessionStore(sql);
  }

  /** @see Transactions */
  async transaction<T>(work: (store: Store) => Promise<T>): Promise<T> {
    if (!isPool(this.#sql)) return work(this);
    const changed = new Set<string>();
    const options: StoreOptions = {
      ...this.#options,
      onIdentityChange: (ids) => {
        for (const id of ids) changed.add(id);
      },
    };
    // The library's type unwraps arrays of queries, which `work` never returns.
    const result = (await this.#sql.begin((connection) => work(new Store(connection, options)))) as T;
    if (changed.size > 0) this.#options.onIdentityChange?.([...changed]);
    return result;
  }

  /** Names of our indexes that the database lacks. */
  async missingIndexes(): Promise<string[]> {
    return findMissingIndexes((text, values = []) => query(this.#sql, text, values));
  }

  /** Rejects when the database does not answer, or lacks a column that requests use. */
  async ping(): Promise<void> {
    const rows = await query(this.#sql, schemaProblemsQuery, schemaProblemsParameters(usedColumns));
    const problems = describeProblems(toSchemaProblems(rows));
    if (problems !== undefined) throw new Error(`the schema ${problems}`);
  }
}
