import { createLogger } from '@tollgate/kit/logger';
import type t from 'tap';
import type { Context } from '../../src/app/context.ts';
import { Store } from '../../src/app/store.ts';
import { readSettings } from '../../src/config/settings.ts';
import { connect } from '../../src/db/connection.ts';
import { DpopProofs } from '../../src/dpop/proofs.ts';
import { HookCaller } from '../../src/hooks/caller.ts';
import { TokenCache } from '../../src/keys/jwt.ts';
import { systemRandomness } from '../../src/keys/secrets.ts';
import { parseSigningKeys } from '../../src/keys/signing-keys.ts';
import { Limiter } from '../../src/limits/limiter.ts';
import { AdminKeyLimit } from '../../src/limits/wrong-keys.ts';
import { Metrics } from '../../src/metrics.ts';
import { ClientDocuments } from '../../src/oauth/client-documents.ts';
import { LeakedPasswords } from '../../src/passwords/leaked-passwords.ts';
import { PasswordHasher } from '../../src/passwords/passwords.ts';
import { ProviderConnections } from '../../src/providers/connections.ts';
import { testDatabase } from './test-database.ts';
import { unencrypted } from './unencrypted.ts';

/** Counted operations. */
export interface Work {
  hashes: number;
  leaks: number;
  statements: number;
  /** SMTP dialogs that the response waits for. */
  mails: number;
}

const none: Work = { hashes: 0, leaks: 0, statements: 0, mails: 0 };

/** A context that counts operations. `variables` are names with `SVC_`. */
export async function countingServices(
  test: Pick<typeof t, 'name' | 'teardown'>,
  variables: Readonly<Record<string, string>>,
) {
  const { url: databaseUrl } = await testDatabase(test);
  const work = { ...none };
  const read = readSettings({
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    DATABASE_URL: databaseUrl,
    SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
    SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
    SVC_SMTP_HOST: '127.0.0.1',
    SVC_SMTP_PORT: '2525',
    ...variables,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const { settings } = read;
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 2 });
  test.teardown(() => sql.end());
  const counted = new Proxy(sql, {
    get(target, key, receiver) {
      if (key === 'unsafe') work.statements++;
      return Reflect.get(target, key, receiver);
    },
  });
  class CountedHasher extends PasswordHasher {
    override hash(password: string): Promise<string> {
      work.hashes++;
      return super.hash(password);
    }
    override verify(...of: Parameters<PasswordHasher['verify']>): Promise<boolean> {
      work.hashes++;
      return super.verify(...of);
    }
    override verifyDummy(password: string): Promise<false> {
      work.hashes++;
      return super.verifyDummy(password);
    }
  }
  class CountedLookups extends LeakedPasswords {
    override includes(): Promise<boolean> {
      work.leaks++;
      return Promise.resolve(false);
    }
  }
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const store = new Store(counted, { cipher: unencrypted });
  const parsed = parseSigningKeys(settings);
  if (!parsed.ok) throw new Error(parsed.expected);
  const metrics = new Metrics();
  const services: Omit<Context, 'clientDocuments'> = {
    nowMs: Date.now,
    metrics,
    logger,
    mailbox: undefined,
    explain: { current: undefined },
    issuers: { current: undefined },
    issuerReport: { current: undefined },
    settings,
    store,
    keys: parsed.keys,
    providers: new ProviderConnections(settings, { store, nowMs: Date.now }),
    tokens: new TokenCache(),
    random: systemRandomness,
    passwords: new CountedHasher({ concurrency: 1 }),
    leakedPasswords: new CountedLookups(settings, { logger, nowMs: Date.now }),
    dpop: new DpopProofs({ store, settings, nowMs: Date.now, verifier: 'api' }),
    limiter: new Limiter({ store, settings, logger, metrics, nowMs: Date.now }),
    adminKeyLimit: new AdminKeyLimit({ settings, metrics, nowMs: Date.now }),
    mailer: {
      async send() {
        work.mails++;
        await Promise.resolve();
      },
      async sendNothing() {
        work.mails++;
        await Promise.resolve();
      },
    },
    background: { run: () => undefined },
    hooks: new HookCaller({
      settings,
      sql,
      random: systemRandomness,
      metrics: new Metrics(),
      logger,
      nowMs: Date.now,
    }),
    sms: { channels: ['sms'], send: () => Promise.resolve({ messageId: 'id' }) },
  };
  return {
    services: { ...services, clientDocuments: new ClientDocuments(services) } satisfies Context,
    /** The operations of an action, and its result or error. */
    async during(
      action: () => Promise<unknown>,
    ): Promise<{ readonly work: Work; readonly outcome: unknown }> {
      Object.assign(work, none);
      const outcome = await action().catch((error: unknown) => error);
      return { work: { ...work }, outcome };
    },
  };
}
