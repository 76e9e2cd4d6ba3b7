import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import {
  type Answer,
  type AuthServer,
  signedIn,
  signUp,
  startAuthServer,
} from '../../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../../helpers/mail-server.ts';
import { awaitWaiting } from '../../helpers/waiting-statements.ts';

const parallel = 20;

function together(ask: (n: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: parallel }, (_, n) => ask(n)));
}

function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of answers) {
    const what = `${status} ${String(body.error_code ?? 'ok')}`;
    counts[what] = (counts[what] ?? 0) + 1;
  }
  return counts;
}

async function count(t: Test, { databaseUrl }: AuthServer, table: string): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const [row] = await sql`select count(*)::int as n from ${sql(`auth.${table}`)}`;
  return Number(row?.n);
}

t.test('parallel sign-ups with one email create one user', async (t) => {
  const server = await startAuthServer(t);
  const body = { email: 'ada@example.com', password: 'correct horse' };
  const answers = await together(() => server.call('POST', '/signup', { body }));
  t.equal(tally(answers)['200 ok'], 1);
  t.equal(answers.filter(({ status }) => status >= 500).length, 0);
  t.equal(await count(t, server, 'users'), 1);
  t.equal(await count(t, server, 'sessions'), 1);
});

t.test('parallel sign-ups with confirmation create one user and send one mail', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const body = { email: 'ada@example.com', password: 'correct horse' };
  const answers = await together(() => server.call('POST', '/signup', { body }));
  t.equal(answers.filter(({ status }) => status >= 500).length, 0);
  t.equal(await count(t, server, 'users'), 1);
  await smtp.mailTo('ada@example.com');
  await server.stop();
  t.equal(smtp.mails().length, 1);
});

t.test('code and link are spent once', async (t) => {
  // Late requests count as wrong guesses.
  const { server, smtp } = await startMailingServer(t, { RATE_LIMIT_WRONG_CODES: '100' });
  for (const [email, use] of [
    ['code@example.com', 'code'],
    ['link@example.com', 'link'],
  ] as const) {
    await server.call('POST', '/signup', { body: { email, password: 'correct horse' } });
    const mail = await smtp.mailTo(email);
    const body =
      use === 'code'
        ? { type: 'signup', email, token: codeIn(mail) }
        : { type: 'signup', token_hash: linkIn(mail).searchParams.get('token') };
    const answers = await together(() => server.call('POST', '/verify', { body }));
    t.same(tally(answers), { '200 ok': 1, '403 otp_expired': parallel - 1 }, use);
  }
  t.equal(await count(t, server, 'sessions'), 2);
});

t.test('PKCE code is exchanged once', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const verifier = 'v'.repeat(43);
  await server.call('POST', '/signup', {
    body: {
      email: 'ada@example.com',
      password: 'correct horse',
      code_challenge: verifier,
      code_challenge_method: 'plain',
    },
  });
  const { pathname, search } = linkIn(await smtp.mailTo('ada@example.com'));
  const { headers } = await server.call('GET', pathname + search);
  const auth_code = new URL(headers.get('location') ?? '').searchParams.get('code');
  const answers = await together(() =>
    server.call('POST', '/token?grant_type=pkce', { body: { auth_code, code_verifier: verifier } }),
  );
  t.same(tally(answers), { '200 ok': 1, '404 flow_state_not_found': parallel - 1 });
});

t.test('factor challenge is verified once', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token } = await signUp(server);
  const enrolled = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  // Parsed boundary: the form of an enrolment.
  const { id, totp } = enrolled.body as { id: string; totp: { secret: string } };
  const challenge = await server.call('POST', `/factors/${id}/challenge`, { token, body: {} });
  const secret = Secret.fromBase32(totp.secret);
  const code = TOTP.generate({ secret, timestamp: server.clock.nowMs() });
  const body = { challenge_id: challenge.body.id, code };
  const answers = await together(() => server.call('POST', `/factors/${id}/verify`, { token, body }));
  t.equal(tally(answers)['200 ok'], 1);
  t.equal(answers.filter(({ status }) => status >= 500).length, 0);
});

t.test('parallel deletions and refreshes leave no session', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token, refreshToken } = await signUp(server);
  const answers = await together((n) =>
    n % 2 === 0
      ? server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: refreshToken } })
      : server.call('POST', '/logout', { token }),
  );
  t.equal(answers.filter(({ status }) => status >= 500).length, 0);
  t.equal(await count(t, server, 'sessions'), 0);
  t.equal(await count(t, server, 'refresh_tokens'), 0);
});

t.test('concurrent factor verifications in two sessions do not deadlock', async (t) => {
  const server = await startAuthServer(t);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  for (let round = 0; round < 2; round++) {
    const email = `ada${round}@example.com`;
    const first = await signUp(server, { email });
    const signIn = await server.call('POST', '/token?grant_type=password', {
      body: { email, password: 'correct horse' },
    });
    const sessions = [first, signedIn(signIn)];
    const verifications: { path: string; token: string; body: unknown }[] = [];
    for (const { accessToken: token } of sessions) {
      const enrolled = await server.call('POST', '/factors', {
        token,
        body: { factor_type: 'totp', friendly_name: token.slice(-20) },
      });
      // Parsed boundary: the form of an enrolment.
      const { id, totp } = enrolled.body as { id: string; totp: { secret: string } };
      const challenge = await server.call('POST', `/factors/${id}/challenge`, { token, body: {} });
      const secret = Secret.fromBase32(totp.secret);
      const code = TOTP.generate({ secret, timestamp: server.clock.nowMs() });
      verifications.push({
        path: `/factors/${id}/verify`,
        token,
        body: { challenge_id: challenge.body.id, code },
      });
    }
    // Both wait for their locked sessions and continue simultaneously.
    const answers = await sql.begin(async (busy) => {
      await busy`select 1 from auth.sessions for update`;
      const replies = verifications.map(({ path, ...options }) => server.call('POST', path, options));
      await awaitWaiting(busy, 2);
      return { replies };
    });
    const tallied = tally(await Promise.all(answers.replies));
    t.equal(tallied['200 ok'], 1, JSON.stringify(tallied));
    t.equal(Object.keys(tallied).filter((what) => what.startsWith('5')).length, 0);
  }
});

t.test('code presented while the next one is sent is rejected without a deadlock', async (t) => {
  const { server, smtp } = await startMailingServer(t, { SMTP_MAX_FREQUENCY: '0' });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const email = 'ada@example.com';
  const signedUp = await server.call('POST', '/signup', { body: { email, password: 'correct horse' } });
  t.equal(signedUp.status, 200);
  const token = codeIn(await smtp.mailTo(email));
  const { resent, shown } = await sql.begin(async (busy) => {
    await busy`select 1 from auth.users for update`;
    const resent = server.call('POST', '/resend', { body: { type: 'signup', email } });
    await awaitWaiting(busy, 1);
    const shown = server.call('POST', '/verify', { body: { type: 'signup', email, token } });
    await awaitWaiting(busy, 2);
    return { resent: [resent], shown: [shown] };
  });
  t.same(tally(await Promise.all([...resent, ...shown])), { '200 ok': 1, '403 otp_expired': 1 });
});
