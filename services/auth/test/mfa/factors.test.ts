import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import t from 'tap';
import {
  type Answer,
  type AuthServer,
  type SignedIn,
  signedIn,
  signUp,
  startAuthServer,
} from '../helpers/auth-server.ts';
import { startMailingServer } from '../helpers/mail-server.ts';

const minuteMs = 60_000;

async function enroll(server: AuthServer, { accessToken: token }: SignedIn, name = '') {
  const answer = await server.call('POST', '/factors', {
    token,
    body: { factor_type: 'totp', friendly_name: name },
  });
  // Parsed boundary: tests with the client library verify the shape.
  const enrolled = answer.body as { id: string; totp?: { secret: string; uri: string } };
  return { answer, id: enrolled.id, secret: enrolled.totp?.secret ?? '', uri: enrolled.totp?.uri ?? '' };
}

async function challenge(
  server: AuthServer,
  { accessToken: token }: SignedIn,
  factorId: string,
  headers = {},
) {
  const answer = await server.call('POST', `/factors/${factorId}/challenge`, { token, headers });
  return String(answer.body.id);
}

function verify(
  server: AuthServer,
  { accessToken: token }: SignedIn,
  of: {
    readonly factorId: string;
    readonly challengeId: string;
    readonly code: string;
    readonly headers?: Record<string, string>;
  },
): Promise<Answer> {
  const body = { challenge_id: of.challengeId, code: of.code };
  return server.call('POST', `/factors/${of.factorId}/verify`, { token, body, headers: of.headers ?? {} });
}

function codeNow(server: AuthServer, secret: string): string {
  return TOTP.generate({ secret: Secret.fromBase32(secret), timestamp: server.clock.nowMs() });
}

async function auditActions({ databaseUrl }: AuthServer): Promise<string[]> {
  const sql = postgres(databaseUrl, { max: 1 });
  const rows =
    await sql`select payload ->> 'action' as action from auth.audit_log_entries order by created_at, ctid`;
  await sql.end();
  return rows.map(({ action }) => String(action));
}

t.test('enrolling requires a supported factor type and the setting', async (t) => {
  const server = await startAuthServer(t, {
    MFA_TOTP_ENROLL_ENABLED: 'false',
  });
  const { accessToken: token } = await signUp(server);
  const enrolling = (body: unknown) => server.call('POST', '/factors', { token, body });
  t.match(await enrolling({}), {
    status: 400,
    body: { error_code: 'validation_failed', msg: 'factor_type needs to be totp, phone, or webauthn' },
  });
  t.match(await enrolling({ factor_type: 'totp' }), {
    status: 422,
    body: { error_code: 'mfa_totp_enroll_not_enabled' },
  });
  t.match(await enrolling({ factor_type: 'phone' }), {
    status: 422,
    body: { error_code: 'mfa_phone_enroll_not_enabled' },
  });
  t.match(await enrolling({ factor_type: 'webauthn' }), {
    status: 422,
    body: { error_code: 'mfa_webauthn_enroll_not_enabled' },
  });
});

t.test('verification can be disabled', async (t) => {
  const server = await startAuthServer(t, { MFA_TOTP_VERIFY_ENABLED: 'false' });
  const ada = await signUp(server);
  const { id, answer } = await enroll(server, ada, 'x'.repeat(256));
  t.match(answer, { status: 400, body: { msg: 'friendly_name is too long' } });
  t.equal(id, undefined);
  const { id: factorId, uri } = await enroll(server, ada);
  t.match(uri, /^otpauth:\/\/totp\/example\.com:ada/, 'issuer defaults to the host of SITE_URL');
  const refusal = { status: 422, body: { error_code: 'mfa_totp_verify_not_enabled' } };
  t.match(await server.call('POST', `/factors/${factorId}/challenge`, { token: ada.accessToken }), refusal);
  t.match(await verify(server, ada, { factorId, challengeId: factorId, code: '000000' }), refusal);
});

t.test('factor names are unique, also in concurrent requests', async (t) => {
  const server = await startAuthServer(t);
  const ada = await signUp(server);
  const answers = await Promise.all([1, 2, 3].map(() => enroll(server, ada, 'phone')));
  t.same(answers.map(({ answer }) => answer.status).sort(), [200, 422, 422]);
  t.match((await enroll(server, ada, 'phone')).answer.body, {
    error_code: 'mfa_factor_name_conflict',
    msg: 'A factor with the friendly name "phone" for this user already exists',
  });
  t.equal((await enroll(server, ada)).answer.status, 200);
  t.equal((await enroll(server, ada)).answer.status, 200, 'no name is no conflict');
});

t.test('number of factors is limited, expired unverified ones do not count', async (t) => {
  const server = await startAuthServer(t, {
    MFA_MAX_ENROLLED_FACTORS: '2',
    MFA_FACTOR_EXPIRY_DURATION: '600',
  });
  const ada = await signUp(server);
  await enroll(server, ada, 'a');
  await enroll(server, ada, 'b');
  t.match((await enroll(server, ada, 'c')).answer, {
    status: 422,
    body: { error_code: 'too_many_enrolled_mfa_factors' },
  });
  server.clock.advance(10 * minuteMs);
  t.equal((await enroll(server, ada, 'a')).answer.status, 200);
  const { body } = await server.call('GET', '/user', { token: ada.accessToken });
  t.match(body.factors, [{ friendly_name: 'a', status: 'unverified', factor_type: 'totp' }]);
  t.equal(Array.isArray(body.factors) && body.factors.length, 1);
});

t.test('number of factors is limited for concurrent requests, too', async (t) => {
  const server = await startAuthServer(t, { MFA_MAX_ENROLLED_FACTORS: '3' });
  const ada = await signUp(server);
  const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => enroll(server, ada, `f${at}`)));
  const statuses = answers.map(({ answer }) => answer.status).sort();
  t.same(statuses, [...Array(3).fill(200), ...Array(5).fill(422)]);
});

t.test('number of verified factors is limited', async (t) => {
  const server = await startAuthServer(t, { MFA_MAX_VERIFIED_FACTORS: '1' });
  const ada = await signUp(server);
  const { id: factorId, secret } = await enroll(server, ada);
  const challengeId = await challenge(server, ada, factorId);
  const { body } = await verify(server, ada, { factorId, challengeId, code: codeNow(server, secret) });
  const raised = { ...ada, accessToken: String(body.access_token) };
  t.match((await enroll(server, raised, 'b')).answer.body, {
    error_code: 'too_many_enrolled_mfa_factors',
    msg: 'Maximum number of verified factors reached, unenroll to continue',
  });
});

t.test('one of several concurrent answers to a challenge succeeds', async (t) => {
  const server = await startAuthServer(t);
  const ada = await signUp(server);
  const { id: factorId, secret } = await enroll(server, ada);
  const challengeId = await challenge(server, ada, factorId);
  const of = { factorId, challengeId, code: codeNow(server, secret) };
  const answers = await Promise.all(Array.from({ length: 8 }, () => verify(server, ada, of)));
  t.same(answers.map(({ status }) => status).sort(), [200, ...Array(7).fill(422)]);
  t.match(await verify(server, ada, of), { status: 422, body: { error_code: 'mfa_ip_address_mismatch' } });
});

t.test('code is accepted once, also for another challenge', async (t) => {
  const server = await startAuthServer(t);
  const ada = await signUp(server);
  const { id: factorId, secret } = await enroll(server, ada);
  const code = codeNow(server, secret);
  const [first, second] = [await challenge(server, ada, factorId), await challenge(server, ada, factorId)];
  const both = [first, second].map((challengeId) => verify(server, ada, { factorId, challengeId, code }));
  const answers = await Promise.all(both);
  t.same(answers.map(({ status }) => status).sort(), [200, 422], 'also when two come at once');

  server.clock.advance(30_000);
  const again = { factorId, challengeId: await challenge(server, ada, factorId), code };
  t.match(await verify(server, ada, again), {
    status: 422,
    body: { error_code: 'mfa_verification_failed', msg: 'Invalid TOTP code entered' },
  });
  const next = {
    ...again,
    challengeId: await challenge(server, ada, factorId),
    code: codeNow(server, secret),
  };
  t.equal((await verify(server, ada, next)).status, 200, 'the next code is good');
});

t.test('challenge is bound to client address, expiry and factor', async (t) => {
  const server = await startAuthServer(t, {
    SECURITY_SVC_FORWARDED_FOR_ENABLED: 'true',
    MFA_CHALLENGE_EXPIRY_DURATION: '6m',
  });
  const ada = await signUp(server);
  const { id: factorId, secret } = await enroll(server, ada);
  const other = await enroll(server, ada, 'other');
  const from = (address: string) => ({ 'svc-forwarded-for': address });
  const challengeId = await challenge(server, ada, factorId, from('2001:db8::1'));
  const answer = (headers: Record<string, string>, id = factorId) =>
    verify(server, ada, { factorId: id, challengeId, code: codeNow(server, secret), headers });

  t.match(await answer(from('2001:db8::2')), {
    status: 422,
    body: { error_code: 'mfa_ip_address_mismatch' },
  });
  t.match(await answer(from('2001:db8::1'), other.id), {
    status: 422,
    body: { error_code: 'mfa_factor_not_found' },
  });
  server.clock.advance(6 * minuteMs);
  t.match(await answer(from('2001:db8::1')), { status: 422, body: { error_code: 'mfa_challenge_expired' } });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.same(await sql`select id from auth.mfa_challenges where id = ${challengeId}`, [], 'deleted');
  await sql.end();
  const next = await challenge(server, ada, factorId, from('2001:db8::1'));
  server.clock.advance(4 * minuteMs);
  const code = codeNow(server, secret);
  const headers = from('2001:db8:0:0::1');
  t.equal((await verify(server, ada, { factorId, challengeId: next, code, headers })).status, 200);
});

t.test('attempts per factor are limited across the addresses of a network', async (t) => {
  const server = await startAuthServer(t, {
    MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: '3',
    SECURITY_SVC_FORWARDED_FOR_ENABLED: 'true',
  });
  const ada = await signUp(server);
  const { id: factorId } = await enroll(server, ada);
  for (const [index, expected] of [422, 422, 422, 429].entries()) {
    const headers = { 'svc-forwarded-for': `192.0.2.${index}` };
    const challengeId = await challenge(server, ada, factorId, headers);
    const { status } = await verify(server, ada, { factorId, challengeId, code: 'abcdef', headers });
    t.equal(status, expected);
  }
});

t.test('factors of other users and invalid ids are not found', async (t) => {
  const server = await startAuthServer(t);
  const ada = await signUp(server);
  const bob = await signUp(server, { email: 'bob@example.com' });
  const { id } = await enroll(server, ada);
  const token = bob.accessToken;
  const notFound = { status: 404, body: { error_code: 'mfa_factor_not_found', msg: 'Factor not found' } };
  t.match(await server.call('POST', `/factors/${id}/challenge`, { token }), notFound);
  t.match(await verify(server, bob, { factorId: id, challengeId: id, code: '1' }), notFound);
  t.match(await server.call('DELETE', `/factors/${id}`, { token }), notFound);
  t.match(await server.call('DELETE', '/factors/mine', { token }), {
    status: 404,
    body: { error_code: 'validation_failed', msg: 'factor_id must be an UUID' },
  });
  t.match(await verify(server, ada, { factorId: id, challengeId: 'x', code: '1' }), { status: 400 });
});

t.test('audit log has the events of factors', async (t) => {
  const server = await startAuthServer(t);
  const ada = await signUp(server);
  const { id: factorId, secret } = await enroll(server, ada);
  const challengeId = await challenge(server, ada, factorId);
  const { body } = await verify(server, ada, { factorId, challengeId, code: codeNow(server, secret) });
  const token = String(body.access_token);
  await server.call('DELETE', `/factors/${factorId}`, { token });
  const actions = await auditActions(server);
  t.same(actions.slice(-4), [
    'factor_in_progress',
    'challenge_created',
    'verification_attempted',
    'factor_unenrolled',
  ]);
  t.notMatch(server.logs(), secret);
});

t.test('anonymous users cannot enroll factors', async (t) => {
  const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const { body } = await server.call('POST', '/signup', { body: {} });
  const answer = await server.call('POST', '/factors', {
    token: String(body.access_token),
    body: { factor_type: 'totp' },
  });
  t.match(answer, {
    status: 403,
    body: { error_code: 'no_authorization', msg: 'Anonymous user not allowed to perform these actions' },
  });
});

t.test(
  'guesses of a factor lock it for unknown networks, and the owner gets a mail and still enters',
  async (t) => {
    const { server, smtp } = await startMailingServer(t, {
      MAILER_AUTOCONFIRM: 'true',
      RATE_LIMIT_WRONG_FACTORS: '3',
      RATE_LIMIT_WRONG_FACTORS_PER_DAY: '5',
    });
    const owner = await signUp(server);
    const { id: factorId, secret } = await enroll(server, owner);
    const answer = async (network: string, session: SignedIn, code = codeNow(server, secret)) => {
      const headers = { 'x-forwarded-for': `${network}.7` };
      const challengeId = await challenge(server, session, factorId, headers);
      return verify(server, session, { factorId, challengeId, code, headers });
    };
    t.equal((await answer('192.0.2', owner)).status, 200);
    server.clock.advance(minuteMs);

    const signInAgain = async () =>
      signedIn(
        await server.call('POST', '/token?grant_type=password', {
          body: { email: 'ada@example.com', password: 'correct horse' },
          headers: { 'x-forwarded-for': '198.51.100.7' },
        }),
      );
    const attacker = await signInAgain();
    const statuses: number[] = [];
    for (const network of [...Array.from({ length: 4 }, () => '198.51.100'), '203.0.113', '203.0.113'])
      statuses.push((await answer(network, attacker, '000000')).status);
    t.same(statuses, [422, 422, 422, 429, 422, 422]);
    const refused = await answer('203.0.113', attacker);
    t.match(refused, { status: 429, body: { error_code: 'over_request_rate_limit' } });
    t.match((await smtp.mailTo('ada@example.com')).subject, /guessed wrongly too often/);

    const again = await signInAgain();
    t.equal((await answer('192.0.2', again)).status, 200, 'network of the owner');
    server.clock.advance(24 * 60 * minuteMs);
    t.equal((await answer('203.0.113', await signInAgain(), '000000')).status, 422);
  },
);
