// Uses the published client library over HTTP.
import { AuthClient } from '@supabase/auth-js';
import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import { startMailingServer } from '../helpers/mail-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };
const minuteMs = 60_000;
const enabled = {
  MFA_RECOVERY_CODES_ENROLL_ENABLED: 'true',
  MFA_RECOVERY_CODES_VERIFY_ENABLED: 'true',
  MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: '100',
};

function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  return startAuthServer(t, { ...enabled, MFA_RECOVERY_CODES_COUNT: '4', ...variables });
}

function newClient(server: AuthServer) {
  return new AuthClient({
    url: server.url,
    autoRefreshToken: false,
    storageKey: `${server.url} ${Math.random()}`,
    experimental: { recoveryCodes: true },
  });
}

type Client = ReturnType<typeof newClient>;

async function signIn(server: AuthServer): Promise<Client> {
  const client = newClient(server);
  const { error } = await client.signInWithPassword(ada);
  if (error) throw error;
  return client;
}

/** Enrolls and verifies a TOTP factor. Returns its id. */
async function addTotp(server: AuthServer, client: Client, friendlyName: string): Promise<string> {
  const { data } = await client.mfa.enroll({ factorType: 'totp', friendlyName });
  if (data === null) throw new Error('not enrolled');
  const secret = Secret.fromBase32(data.totp.secret);
  const code = TOTP.generate({ secret, timestamp: server.clock.nowMs() });
  const { error } = await client.mfa.challengeAndVerify({ factorId: data.id, code });
  if (error) throw error;
  return data.id;
}

/** A user at aal2 with codes. */
async function withCodes(server: AuthServer) {
  const client = newClient(server);
  await client.signUp(ada);
  const totpId = await addTotp(server, client, 'app');
  const { data, error } = await client.mfa.recoveryCodes.generate();
  if (error) throw error;
  const [first = '', second = '', third = ''] = data.codes;
  return { client, totpId, factorId: data.id, codes: data.codes, first, second, third };
}

async function accessToken(client: Client): Promise<string> {
  return (await client.getSession()).data.session?.access_token ?? '';
}

async function rows(server: AuthServer, text: string) {
  const sql = postgres(server.databaseUrl, { max: 1 });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

t.test('a recovery code raises a later session to aal2, once', async (t) => {
  const server = await start(t, { MFA_RECOVERY_CODES_COUNT: '10' });
  const client = newClient(server);
  await client.signUp(ada);
  t.match((await client.mfa.recoveryCodes.getStatus()).error, { status: 404, code: 'mfa_factor_not_found' });
  t.match((await client.mfa.recoveryCodes.generate()).error, {
    status: 403,
    code: 'insufficient_aal',
    message: 'AAL2 required to generate recovery codes',
  });
  await addTotp(server, client, 'app');
  const generated = await client.mfa.recoveryCodes.generate();
  t.match(generated.data, { type: 'recovery_code', friendly_name: 'Recovery codes', total: 10 });
  const codes = generated.data?.codes ?? [];
  t.equal(new Set(codes).size, 10);
  t.ok(codes.every((code) => /^[a-z2-7]{16}$/.test(code)));
  t.match((await client.mfa.recoveryCodes.generate()).error, {
    status: 422,
    code: 'mfa_verified_factor_exists',
  });
  const stored = await rows(server, 'select code_hash from auth.mfa_recovery_codes');
  t.ok(stored.every(({ code_hash: hash }) => hash.startsWith('$argon2id$v=19$m=19456,t=1,p=1$')));

  const later = await signIn(server);
  t.match((await later.mfa.getAuthenticatorAssuranceLevel()).data, {
    currentLevel: 'aal1',
    nextLevel: 'aal2',
  });
  t.match((await later.mfa.recoveryCodes.regenerate()).error, { status: 403, code: 'insufficient_aal' });
  t.match((await later.mfa.recoveryCodes.unenroll()).error, { status: 403, code: 'insufficient_aal' });
  t.match((await later.mfa.recoveryCodes.verify({ code: ' - ' })).error, {
    status: 400,
    message: 'Code needs to be non-empty',
  });
  const asWritten = codes[0]?.toUpperCase().replaceAll(/.{4}/g, '$&-') ?? '';
  const verified = await later.mfa.recoveryCodes.verify({ code: asWritten });
  t.match(verified.data, { recovery_codes_remaining: 9, user: { email: ada.email } });
  t.match((await later.mfa.getAuthenticatorAssuranceLevel()).data, {
    currentLevel: 'aal2',
    currentAuthenticationMethods: [{ method: 'mfa/recovery_code' }, { method: 'password' }],
  });
  t.equal((await later.refreshSession()).error, null, 'the returned refresh token is valid');
  const id = generated.data?.id ?? '';
  t.same((await later.mfa.recoveryCodes.getStatus()).data, {
    id,
    type: 'recovery_code',
    total: 10,
    remaining: 9,
  });
  t.match((await later.mfa.listFactors()).data?.recovery_code, [{ id, status: 'verified' }]);

  const third = await signIn(server);
  t.match((await third.mfa.recoveryCodes.verify({ code: codes[0] ?? '' })).error, {
    status: 422,
    code: 'mfa_verification_failed',
    message: 'Invalid recovery code entered',
  });
  t.equal((await third.mfa.recoveryCodes.verify({ code: codes[1] ?? '' })).error, null);
  for (const code of codes) t.notMatch(server.logs(), code);
});

t.test('of concurrent requests with a code one succeeds, also from several sessions', async (t) => {
  const server = await start(t, { MFA_RECOVERY_CODES_MAX_VERIFY_ATTEMPTS: '15' });
  const { first } = await withCodes(server);
  const clients = await Promise.all([1, 2, 3].map(() => signIn(server)));
  const tokens = await Promise.all(clients.map(accessToken));
  const verify = (token: string) =>
    server.call('POST', '/factors/recovery-codes/verify', { token, body: { code: first } });
  const answers = await Promise.all([...tokens, ...tokens].map(verify));
  t.equal(answers.filter(({ status }) => status === 200).length, 1);
  t.match(
    await rows(server, 'select count(*)::int from auth.mfa_recovery_codes where consumed_at is not null'),
    [{ count: 1 }],
  );
});

t.test('too many wrong codes lock the codes for a while, and the right one resets the count', async (t) => {
  const server = await start(t, {
    MFA_RECOVERY_CODES_MAX_VERIFY_ATTEMPTS: '3',
    MFA_RECOVERY_CODES_LOCKOUT_DURATION: '10m',
  });
  const { client, first, second, third } = await withCodes(server);
  const later = await signIn(server);
  const token = await accessToken(later);
  const guess = (code: string) =>
    server.call('POST', '/factors/recovery-codes/verify', { token, body: { code } });
  await guess('a'.repeat(16));
  await guess('b'.repeat(16));
  t.match(await guess(first), { status: 200 });
  const guesses = await Promise.all(Array.from({ length: 5 }, (_, index) => guess(`${index}`.repeat(16))));
  const statuses = guesses.map(({ status }) => status).sort((a, b) => a - b);
  t.same(statuses, [422, 422, 422, 429, 429], 'three of the concurrent guesses are evaluated');
  const locked = await guess(second);
  t.match(locked, { status: 429, body: { error_code: 'mfa_recovery_codes_locked' } });
  t.equal(locked.headers.get('retry-after'), '600');
  server.clock.advance(10 * minuteMs);
  t.match(await guess('c'.repeat(16)), { status: 422 }, 'the count starts again');
  t.match(await guess(second), { status: 200 });

  for (const code of ['d', 'e', 'f']) await guess(code.repeat(16));
  t.match(await guess(third), { status: 429 });
  t.equal((await client.mfa.recoveryCodes.regenerate()).error, null);
  t.match(await guess(third), { status: 422 }, 'regeneration ends the lockout, and the old codes');
});

t.test('wrong codes of an attacker do not lock the owner out, who gets a mail', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    ...enabled,
    MAILER_AUTOCONFIRM: 'true',
    MFA_RECOVERY_CODES_MAX_VERIFY_ATTEMPTS: '3',
    RATE_LIMIT_WRONG_FACTORS_PER_DAY: '5',
  });
  const { first, second } = await withCodes(server);
  const token = await accessToken(await signIn(server));
  const guess = (network: string, code: string) =>
    server.call('POST', '/factors/recovery-codes/verify', {
      token,
      body: { code },
      headers: { 'x-forwarded-for': `${network}.7` },
    });
  const statuses: number[] = [];
  for (let count = 0; count < 4; count++) statuses.push((await guess('198.51.100', 'a'.repeat(16))).status);
  t.same(statuses, [422, 422, 422, 429]);
  t.equal((await guess('192.0.2', first)).status, 200, 'owner in another network');
  for (let count = 0; count < 2; count++) await guess('203.0.113', 'a'.repeat(16));
  t.match(await guess('203.0.113', second), {
    status: 429,
    body: { error_code: 'mfa_recovery_codes_locked' },
  });
  t.match((await smtp.mailTo(ada.email)).subject, /guessed wrongly too often/);
  t.equal((await guess('192.0.2', second)).status, 200, 'known network');
});

t.test('regeneration replaces all codes, also concurrently', async (t) => {
  const server = await start(t);
  const { client, factorId, codes } = await withCodes(server);
  const token = await accessToken(client);
  const regenerate = () => server.call('POST', '/factors/recovery-codes/regenerate', { token });
  const answers = await Promise.all([regenerate(), regenerate(), regenerate()]);
  const done = answers.filter(({ status }) => status === 200);
  t.ok(done.length > 0);
  t.ok(answers.every(({ status }) => status === 200 || status === 409));
  t.match(done[0]?.body, { id: factorId, friendly_name: 'Recovery codes', total: 4 });
  t.equal(done[0]?.headers.get('cache-control'), 'no-store');
  t.match((await client.mfa.recoveryCodes.getStatus()).data, { id: factorId, total: 4, remaining: 4 });
  t.match((await client.mfa.recoveryCodes.verify({ code: codes[0] ?? '' })).error, {
    code: 'mfa_verification_failed',
  });
});

t.test('codes are removed on request, by an administrator, and with the last other factor', async (t) => {
  const server = await start(t);
  const { client, totpId, factorId } = await withCodes(server);
  t.match((await client.mfa.unenroll({ factorId })).error, {
    status: 422,
    message: 'Recovery codes cannot be unenrolled with this endpoint, use DELETE /factors/recovery-codes',
  });
  t.match((await client.mfa.challenge({ factorId })).error, { status: 400, code: 'validation_failed' });
  t.same((await client.mfa.recoveryCodes.unenroll()).data, { id: factorId });
  t.match((await client.mfa.recoveryCodes.unenroll()).error, { status: 404, code: 'mfa_factor_not_found' });

  const named = await client.mfa.recoveryCodes.generate({ friendlyName: 'on paper' });
  t.match(named.data, { friendly_name: 'on paper' });
  const userId = (await client.getUser()).data.user?.id ?? '';
  const removed = await server.call('DELETE', `/admin/users/${userId}/factors/${named.data?.id}`, {
    token: adminToken(),
  });
  t.match(removed, { status: 200, body: { id: named.data?.id } });
  t.match((await client.mfa.recoveryCodes.getStatus()).error, { status: 404 });

  t.equal((await client.mfa.recoveryCodes.generate()).error, null);
  const second = await addTotp(server, client, 'tablet');
  t.equal((await client.mfa.unenroll({ factorId: totpId })).error, null);
  t.equal((await client.mfa.recoveryCodes.getStatus()).error, null, 'another factor is left');
  t.equal((await client.mfa.unenroll({ factorId: second })).error, null);
  t.match((await client.mfa.listFactors()).data, { all: [] });
  t.match(await rows(server, 'select count(*)::int from auth.mfa_recovery_codes'), [{ count: 0 }]);
  const entries = await rows(
    server,
    `select payload ->> 'action' as action from auth.audit_log_entries
      where payload ->> 'action' like 'recovery_codes%' order by created_at, ctid`,
  );
  t.same(
    entries.map(({ action }) => action),
    ['generated', 'deleted', 'generated', 'generated', 'deleted'].map((action) => `recovery_codes_${action}`),
  );
});

t.test('codes need another factor, which can be removed concurrently', async (t) => {
  const server = await start(t);
  const client = newClient(server);
  await client.signUp(ada);
  const factorId = await addTotp(server, client, 'app');
  const [generated] = await Promise.all([
    client.mfa.recoveryCodes.generate(),
    client.mfa.unenroll({ factorId }),
  ]);
  const { all } = (await client.mfa.listFactors()).data ?? { all: [] };
  t.same(all, [], `nothing is left, after ${generated.error?.code ?? 'codes were generated'}`);
});

t.test('hook can reject a recovery code', async (t) => {
  const hook = await startHookServer(t);
  const server = await start(t, hook.variables('MFA_VERIFICATION_ATTEMPT'));
  hook.answer({ body: {} });
  const { client, factorId, first } = await withCodes(server);
  hook.answer({ body: { decision: 'reject' } });
  t.match((await client.mfa.recoveryCodes.verify({ code: first })).error, {
    status: 403,
    code: 'mfa_verification_rejected',
  });
  t.match(hook.last(), { factor_id: factorId, factor_type: 'recovery_code', valid: true });
});

t.test('switches disable generation and verification', async (t) => {
  const server = await startAuthServer(t);
  const client = newClient(server);
  await client.signUp(ada);
  t.match((await client.mfa.recoveryCodes.generate()).error, {
    status: 422,
    code: 'mfa_recovery_codes_enroll_not_enabled',
  });
  t.match((await client.mfa.recoveryCodes.verify({ code: 'a' })).error, {
    status: 422,
    code: 'mfa_recovery_codes_verify_not_enabled',
  });
});

t.test('codes are stored as salted hashes of Argon2id', async (t) => {
  const server = await start(t);
  const { codes } = await withCodes(server);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const [row] =
    await sql`select to_jsonb(array_agg(to_jsonb(c)))::text as stored from auth.mfa_recovery_codes c`;
  const stored = String(row?.stored);
  for (const code of codes) t.notMatch(stored, code);
  const salts = [...stored.matchAll(/\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$([^$]+)\$/g)].map(
    ([, salt]) => salt,
  );
  t.equal(salts.length, codes.length);
  t.equal(new Set(salts).size, codes.length);
});
