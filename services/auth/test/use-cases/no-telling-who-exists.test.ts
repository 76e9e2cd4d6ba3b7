// Whoever watches how much work a request causes must not learn who exists: hashes, statements and talks with the mail server are
// counted, for a known contact and one that nobody has. Time is not measured: it depends on the machine.
import t from 'tap';
import type { RequestMetadata } from '../../src/http/request-metadata.ts';
import { createRecover, createSendOtp } from '../../src/sign-in/otp.ts';
import { signInWithPassword } from '../../src/sign-in/password.ts';
import { createResend } from '../../src/sign-in/resend.ts';
import { createSignUp } from '../../src/sign-up/sign-up.ts';
import { countingServices } from '../helpers/counting-services.ts';
import { metadata as baseFacts, insertUser } from '../helpers/test-store.ts';

const known = 'ada@example.com';
const unknown = 'nobody@example.com';
const metadata: RequestMetadata = baseFacts;
const at = { redirectTo: 'https://example.com', aud: '' };
const challenge = { challenge: 'c'.repeat(43), method: 'plain' } as const;

for (const uniform of ['false', 'true']) {
  t.test(`the same work for known and unknown users, uniform answers: ${uniform}`, async (t) => {
    const { services, during } = await countingServices(t, { SVC_SECURITY_UNIFORM_ANSWERS: uniform });
    const signUp = createSignUp(services);
    const sendOtp = createSendOtp(services);
    const recover = createRecover(services);
    const resend = createResend(services);
    const later = (minutes: number): RequestMetadata => ({
      ...metadata,
      nowMs: metadata.nowMs + minutes * 60_000,
    });
    const mails = uniform === 'true' ? 0 : 1;

    const cases: readonly (readonly [string, number, (email: string) => Promise<unknown>])[] = [
      [
        'password',
        0,
        (email) => signInWithPassword(services, { email, password: 'wrong horse', aud: '' }, metadata),
      ],
      ['recover', mails, (email) => recover({ email, challenge: undefined, ...at }, metadata)],
      ['recover with PKCE', mails, (email) => recover({ email, challenge, ...at }, later(2))],
      ['resend', mails, (email) => resend({ type: 'signup', email, challenge: undefined, ...at }, metadata)],
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

t.test(
  'with uniform answers /recover looks for the user after the answer, with the same work for all',
  async (t) => {
    const { services, during } = await countingServices(t, { SVC_SECURITY_UNIFORM_ANSWERS: 'true' });
    await insertUser(services.store, { email: known });
    const afterAnswer: (() => Promise<void>)[] = [];
    let answered = false;
    const { users } = services.store;
    const findByEmail = users.findByEmail.bind(users);
    users.findByEmail = (...of) => {
      t.ok(answered, 'the user is looked for after the answer');
      return findByEmail(...of);
    };
    const recover = createRecover({
      ...services,
      background: { run: (_what, work) => void afterAnswer.push(work) },
    });
    const costs = [];
    for (const email of [known, unknown]) {
      answered = false;
      const before = await during(() => recover({ email, challenge, ...at }, metadata));
      t.equal(before.outcome, undefined);
      t.equal(before.work.statements, 2, 'the spacing of the contact and the quota of mails');
      answered = true;
      const after = await during(async () => {
        for (let work = afterAnswer.shift(); work; work = afterAnswer.shift()) await work();
      });
      t.equal(after.outcome, undefined);
      t.equal(after.work.mails, 1, 'a talk with the mail server');
      costs.push([before.work, after.work]);
    }
    t.same(costs[0], costs[1]);
  },
);
