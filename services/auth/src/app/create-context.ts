import type { Sql } from 'postgres';
import { ApiKeyCache } from '../api-keys/key-cache.ts';
import { BrowserSessionCache } from '../browser-sessions/store.ts';
import type { Settings } from '../config/settings.ts';
import { measureDatabase, traceDatabase } from '../db/observability.ts';
import type { ChangedIds } from '../db/state-reads.ts';
import { DpopProofs } from '../dpop/proofs.ts';
import { IdentityCache } from '../ext-authz/identity-cache.ts';
import { HookCaller } from '../hooks/caller.ts';
import { TokenCache } from '../keys/jwt.ts';
import { ColumnCipher, systemRandomness } from '../keys/secrets.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { Limiter } from '../limits/limiter.ts';
import { AdminKeyLimit } from '../limits/wrong-keys.ts';
import { createMailer } from '../messages/mailer.ts';
import { createSmsGateway } from '../messages/sms.ts';
import { Metrics } from '../metrics.ts';
import { ClientDocuments } from '../oauth/client-documents.ts';
import { LeakedPasswords } from '../passwords/leaked-passwords.ts';
import { PasswordHasher } from '../passwords/passwords.ts';
import { ProviderConnections } from '../providers/connections.ts';
import type { Telemetry } from '../telemetry.ts';
import { Background } from '../work-queue.ts';
import type { Context } from './context.ts';
import { Store } from './store.ts';

/** The context, and the parts of it that have a life of their own. */
export function createContext(
  settings: Settings,
  { logger, nowMs }: Pick<Context, 'logger' | 'nowMs'>,
  resources: {
    readonly sql: Sql;
    readonly telemetry: Pick<Telemetry, 'registry' | 'tracing'>;
    readonly keys: SigningKeys;
  },
) {
  const { sql, telemetry, keys } = resources;
  const { registry, tracing } = telemetry;
  const cipher = new ColumnCipher(settings);
  const metrics = new Metrics(registry);
  const database = traceDatabase(measureDatabase(sql, registry), tracing);
  const store: Store = new Store(database, {
    cipher,
    dbSharedWithGotrue: settings.dbSharedWithGotrue,
    metrics,
    onIdentityChange: (ids) => caches?.invalidate(ids),
  });
  const caches = settings.extAuthzEnabled ? createCaches(store, settings, nowMs) : undefined;
  const { mailer, mailbox, templates } = createMailer(settings, { metrics, logger, nowMs });
  const background = new Background(logger);
  const explain: Context['explain'] = { current: undefined };
  const issuers: Context['issuers'] = { current: undefined };
  const issuerReport: Context['issuerReport'] = { current: undefined };
  const shared = {
    settings,
    store,
    passwords: new PasswordHasher({ ...settings, cipher, metrics }),
    leakedPasswords: new LeakedPasswords(settings, { logger, nowMs }),
    dpop: new DpopProofs({ store, settings, nowMs, verifier: 'api' }),
    limiter: new Limiter({ store, settings, logger, metrics, nowMs }),
    adminKeyLimit: new AdminKeyLimit({ settings, metrics, nowMs }),
    keys,
    providers: new ProviderConnections(settings, { store, nowMs }),
    tokens: new TokenCache(),
    random: systemRandomness,
    mailer,
    mailbox,
    background,
    sms: createSmsGateway(settings, { logger }),
    hooks: new HookCaller({ settings, sql: database, random: systemRandomness, metrics, logger, nowMs }),
    explain,
    issuers,
    issuerReport,
    metrics,
    logger,
    nowMs,
  };
  const context = { ...shared, clientDocuments: new ClientDocuments(shared) } satisfies Context;
  return { context, caches, templates };
}

/** Caches of ext_authz, which changes of users, clients and API keys invalidate. */
function createCaches(store: Store, settings: Settings, nowMs: () => number) {
  const options = { nowMs, maxStalenessMs: settings.extAuthzMaxStalenessMs };
  const checksState = settings.extAuthzSessionCheck;
  const caches = {
    /** Undefined: tokens are trusted until they expire. */
    identities: checksState ? new IdentityCache({ store: store.identityStates, ...options }) : undefined,
    clients: checksState ? new IdentityCache({ store: store.clientStates, ...options }) : undefined,
    apiKeys: settings.apiKeysEnabled ? new ApiKeyCache({ store: store.apiKeyStates, ...options }) : undefined,
    /** Undefined: browsers cannot sign in. */
    browserSessions:
      checksState && settings.pagesEnabled
        ? new BrowserSessionCache({ store: store.browserSessions, tags: settings.sessionTags, ...options })
        : undefined,
  };
  const invalidate = (changed: ChangedIds): void => {
    for (const cache of Object.values(caches)) cache?.invalidate(changed);
  };
  return { ...caches, invalidate };
}

/** Caches of ext_authz; undefined if it is disabled. */
export type Caches = ReturnType<typeof createCaches> | undefined;
