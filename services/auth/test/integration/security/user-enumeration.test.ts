import t from 'tap';
import type { Context } from '../../../src/app/context.ts';
import type { RequestMetadata } from '../../../src/http/request-metadata.ts';
import { recover, resend, sendOtp } from '../../../src/sign-in/otp.ts';
import { signInWithPassword } from '../../../src/sign-in/password.ts';
import { signUp } from '../../../src/sign-up/sign-up.ts';
import { countingServices } from '../../helpers/counting-services.ts';
import { metadata as baseMetadata, insertUser } from '../../helpers/test-store.ts';

// The work of a request must not allow user enumeration. The tests compare numbers of hashes,
// statements and mails for known and unknown contacts, not times, which depend on the machine.

const known = 'ada@example.com';
const unknown = 'unknown@example.com';
const metadata: RequestMetadata = baseMetadata;
const at = { redirectTo: 'https://example.com', aud: '' };
const challenge = { challenge: 'c'.repeat(43), method: 'plain' } as const;

for (const uniform of ['false', 'true']) {
  t.test(`the same work for known and unknown users, uniform answers: ${uniform}`, async (t) => {
    const { services, during } = await countingServices(t, { SVC_SECURITY_UNIFORM_ANSWERS: uniform });
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
      ['recover', mails, (email) => recover(services, { email, challenge: undefined, ...at }, metadata)],
      ['recover with PKCE', mails, (email) => recover(services, { email, challenge, ...at }, later(2))],
      [
        'resend',
        mails,
        (email) => resend(services, { type: 'signup', email, challenge: undefined, ...at }, metadata),
      ],
      // These create the unknown user.
      [
        'otp',
        mails,
        (email) => sendOtp(services, { email: email.replace('unknown', 'new'), challenge, ...at }, later(4)),
      ],
      [
        'sign-up',
        mails,
        (email) =>
          signUp(
            services,
            { email: email.replace('unknown', 'newer'), password: 'correct horse', ...at },
            later(20),
          ),
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
  'with uniform answers /recover looks the user up after the response, with the same work for everyone',
  async (t) => {
    const { services, during } = await countingServices(t, { SVC_SECURITY_UNIFORM_ANSWERS: 'true' });
    await insertUser(services.store, { email: known });
    const afterResponse: (() => Promise<void>)[] = [];
    let responded = false;
    const { users } = services.store;
    const findByEmail = users.findByEmail.bind(users);
    users.findByEmail = (...of) => {
      t.ok(responded, 'the user is looked up after the response');
      return findByEmail(...of);
    };
    const context: Context = {
      ...services,
      background: { run: (_name, work) => void afterResponse.push(work) },
    };
    const costs = [];
    for (const email of [known, unknown]) {
      responded = false;
      const before = await during(() => recover(context, { email, challenge, ...at }, metadata));
      t.equal(before.outcome, undefined);
      t.equal(before.work.statements, 2, 'spacing of the contact and quota of mails');
      responded = true;
      const after = await during(async () => {
        for (let work = afterResponse.shift(); work; work = afterResponse.shift()) await work();
      });
      t.equal(after.outcome, undefined);
      t.equal(after.work.mails, 1, 'one conversation with the mail server');
      costs.push([before.work, after.work]);
    }
    t.same(costs[0], costs[1]);
  },
);
