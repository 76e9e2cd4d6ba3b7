// Whoever watches how much work a request causes must not learn who exists: hashes, statements and talks with the mail server are
// counted, for a known contact and one that nobody has. Time is not measured: it depends on the machine.
import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import type { RequestFacts } from '../../src/domain/request-facts.ts';
import { createPasswordHasher } from '../../src/passwords/password-hasher.ts';
import { systemRandomness } from '../../src/random/system-randomness.ts';
import type { Services } from '../../src/services.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { createPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { parseSigningKeys } from '../../src/tokens/signing-keys.ts';
import { createRecover } from '../../src/use-cases/otp/recover.ts';
import { createResend } from '../../src/use-cases/otp/resend.ts';
import { createSendOtp } from '../../src/use-cases/otp/send-otp.ts';
import { createSignUp } from '../../src/use-cases/sign-up/sign-up.ts';
import { createSignInWithPassword } from '../../src/use-cases/token/sign-in-with-password.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { facts as baseFacts, insertUser } from '../helpers/test-store.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

interface Work {
  hashes: number;
  leaks: number;
  statements: number;
  /** Talks with the mail server that the answer waits for. */
  mails: number;
}

const none: Work = { hashes: 0, leaks: 0, statements: 0, mails: 0 };

/** Services that count what they are asked for. */
async function countingServices(
  test: Pick<typeof t, 'teardown'>,
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
  const hasher = createPasswordHasher(1);
  const hashed = <T>(result: T): T => {
    work.hashes++;
    return result;
  };
  const parsed = parseSigningKeys(settings);
  if (!parsed.ok) throw new Error(parsed.expected);
  const services: Services = {
    logger: createLogger({ level: 'fatal', format: 'json' }),
    mailbox: undefined,
    settings,
    store: createPostgresStore(counted, unencrypted),
    keys: parsed.keys,
    random: systemRandomness,
    passwords: {
      ...hasher,
      hash: (password) => hashed(hasher.hash(password)),
      verify: (password, hash) => hashed(hasher.verify(password, hash)),
      verifyNobody: (password) => hashed(hasher.verifyNobody(password)),
    },
    leakedPasswords: {
      async includes() {
        work.leaks++;
        return Promise.resolve(false);
      },
    },
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
    sms: { send: () => Promise.resolve({ messageId: 'id' }) },
  };
  return {
    services,
    /** The work that something causes, and what it answers or throws. */
    async during(
      action: () => Promise<unknown>,
    ): Promise<{ readonly work: Work; readonly outcome: unknown }> {
      Object.assign(work, none);
      const outcome = await action().catch((error: unknown) => error);
      return { work: { ...work }, outcome };
    },
  };
}

const known = 'ada@example.com';
const unknown = 'nobody@example.com';
const facts: RequestFacts = baseFacts;
const at = { redirectTo: 'https://example.com', aud: '' };
const challenge = { challenge: 'c'.repeat(43), method: 'plain' } as const;

for (const uniform of ['false', 'true']) {
  t.test(`the same work for known and unknown users, uniform answers: ${uniform}`, async (t) => {
    const { services, during } = await countingServices(t, { SVC_SECURITY_UNIFORM_ANSWERS: uniform });
    const signUp = createSignUp(services);
    const signIn = createSignInWithPassword(services);
    const sendOtp = createSendOtp(services);
    const recover = createRecover(services);
    const resend = createResend(services);
    const later = (minutes: number): RequestFacts => ({ ...facts, nowMs: facts.nowMs + minutes * 60_000 });
    const mails = uniform === 'true' ? 0 : 1;

    const cases: readonly (readonly [string, number, (email: string) => Promise<unknown>])[] = [
      ['password', 0, (email) => signIn({ email, password: 'wrong horse', aud: '' }, facts)],
      ['recover', mails, (email) => recover({ email, challenge: undefined, ...at }, facts)],
      ['recover with PKCE', mails, (email) => recover({ email, challenge, ...at }, later(2))],
      ['resend', mails, (email) => resend({ type: 'signup', email, challenge: undefined, ...at }, facts)],
      // Whom these create they know from then on.
      [
        'otp',
        mails,
        (email) => sendOtp({ email: email.replace('nobody', 'new'), challenge, ...at }, later(4)),
      ],
      [
        'sign-up',
        mails,
        (email) =>
          signUp({ email: email.replace('nobody', 'newer'), password: 'correct horse', ...at }, later(20)),
      ],
    ];
    await insertUser(services.store, { email: known });
    for (const [name, expectedMails, action] of cases) {
      const first = await during(() => action(known));
      const second = await during(() => action(unknown));
      t.same(first.work, second.work, name);
      t.equal(first.work.mails, expectedMails, `${name}: mails`);
      t.ok(first.work.statements > 0, `${name}: statements`);
      t.equal(first.work.hashes, name === 'password' || name === 'sign-up' ? 1 : 0, `${name}: hashes`);
      t.equal(first.outcome instanceof Error, name === 'password', name);
      t.equal(second.outcome instanceof Error, name === 'password', name);
    }
  });
}
