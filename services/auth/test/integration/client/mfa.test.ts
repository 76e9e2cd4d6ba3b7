// Uses the published client library over HTTP.
import { AuthClient } from '@supabase/auth-js';
import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { type AuthServer, startAuthServer } from '../../helpers/auth-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

function clientOf(server: AuthServer, name = 'ada') {
  const storageKey = `${server.url} ${name}`;
  return new AuthClient({ url: server.url, autoRefreshToken: false, persistSession: true, storageKey });
}

function codeFor(secret: string, nowMs: number): string {
  return TOTP.generate({ secret: Secret.fromBase32(secret), timestamp: nowMs });
}

async function withFactor(server: AuthServer) {
  const client = clientOf(server);
  await client.signUp(ada);
  const { data } = await client.mfa.enroll({ factorType: 'totp', friendlyName: 'phone' });
  if (data === null) throw new Error('not enrolled');
  return { client, factorId: data.id, secret: data.totp.secret };
}

async function verified(server: AuthServer) {
  const enrolled = await withFactor(server);
  const { client, factorId, secret } = enrolled;
  const { error } = await client.mfa.challengeAndVerify({
    factorId,
    code: codeFor(secret, server.clock.nowMs()),
  });
  if (error) throw error;
  return enrolled;
}

t.test('authenticator app is enrolled by QR code, and its code raises the session to aal2', async (t) => {
  const server = await startAuthServer(t);
  const client = clientOf(server);
  await client.signUp(ada);

  const enrolled = await client.mfa.enroll({ factorType: 'totp', friendlyName: 'phone', issuer: 'Tollgate' });
  t.equal(enrolled.error, null);
  t.match(enrolled.data, { type: 'totp', friendly_name: 'phone' });
  t.match(
    enrolled.data?.totp.uri,
    /^otpauth:\/\/totp\/Tollgate:ada%40example\.com\?issuer=Tollgate&secret=[A-Z2-7]{32}&algorithm=SHA1&digits=6&period=30$/,
  );
  t.match(enrolled.data?.totp.qr_code, /^data:image\/svg\+xml;utf-8,<svg [^#]*<\/svg>$/);
  t.match((await client.mfa.listFactors()).data, { all: [{ status: 'unverified' }], totp: [] });

  server.clock.advance(1000);
  const factorId = enrolled.data?.id ?? '';
  const challenge = await client.mfa.challenge({ factorId });
  t.match(challenge.data, {
    type: 'totp',
    expires_at: Math.floor((server.clock.nowMs() + 300_000) / 1000),
  });
  const code = codeFor(enrolled.data?.totp.secret ?? '', server.clock.nowMs());
  const done = await client.mfa.verify({ factorId, challengeId: challenge.data?.id ?? '', code });
  t.equal(done.error, null);
  t.match(done.data, { token_type: 'bearer', user: { factors: [{ id: factorId, status: 'verified' }] } });

  const level = await client.mfa.getAuthenticatorAssuranceLevel();
  t.match(level.data, {
    currentLevel: 'aal2',
    nextLevel: 'aal2',
    currentAuthenticationMethods: [{ method: 'totp' }, { method: 'password' }],
  });
  t.match((await client.mfa.listFactors()).data?.totp, [{ id: factorId }]);
  const refreshed = await client.refreshSession();
  t.equal(refreshed.error, null, 'the returned refresh token is valid');
  t.match((await client.mfa.getAuthenticatorAssuranceLevel()).data, { currentLevel: 'aal2' });
});

t.test('later sign-in is at aal1 and reports that aal2 is available', async (t) => {
  const server = await startAuthServer(t);
  const { factorId, secret } = await verified(server);
  const other = clientOf(server, 'other');
  await other.signInWithPassword(ada);
  t.match((await other.mfa.getAuthenticatorAssuranceLevel()).data, {
    currentLevel: 'aal1',
    nextLevel: 'aal2',
  });
  const second = await other.mfa.enroll({ factorType: 'totp', friendlyName: 'tablet' });
  t.match(second.error, { code: 'insufficient_aal', status: 403 });
  const unenrolled = await other.mfa.unenroll({ factorId });
  t.match(unenrolled.error, { code: 'insufficient_aal', status: 422 });

  const wrong = await other.mfa.challengeAndVerify({ factorId, code: '000000' });
  t.match(wrong.error, { code: 'mfa_verification_failed', message: 'Invalid TOTP code entered' });
  server.clock.advance(60_000);
  const stale = codeFor(secret, server.clock.nowMs() - 60_000);
  t.equal(
    (await other.mfa.challengeAndVerify({ factorId, code: stale })).error?.code,
    'mfa_verification_failed',
  );
  const late = codeFor(secret, server.clock.nowMs() - 30_000);
  t.equal((await other.mfa.challengeAndVerify({ factorId, code: late })).error, null);
});

t.test(
  'session at aal1 of a user with a factor ends only itself, and changes no factor or identity',
  async (t) => {
    const server = await startAuthServer(t, { SECURITY_MANUAL_LINKING_ENABLED: 'true' });
    const { client: owner } = await verified(server);
    const attacker = clientOf(server, 'other');
    const { data } = await attacker.signInWithPassword(ada);
    const token = data.session?.access_token ?? '';
    const ownerToken = (await owner.getSession()).data.session?.access_token ?? '';
    const { sessions } = (await server.call('GET', '/user/sessions', { token: ownerToken })).body as {
      readonly sessions: readonly { readonly id: string; readonly current: boolean }[];
    };
    const ownerSession = sessions.find(({ current }) => current)?.id;
    // Left over from before the user had a factor.
    const factor = await server.call('POST', '/factors', {
      token: ownerToken,
      body: { factor_type: 'totp', friendly_name: 'tablet' },
    });
    const factorPath = `/factors/${String(factor.body.id)}`;
    for (const [method, path] of [
      ['POST', '/logout?scope=others'],
      ['DELETE', '/user/sessions?scope=others'],
      ['DELETE', `/user/sessions/${ownerSession}`],
      ['POST', `${factorPath}/challenge`],
      ['DELETE', factorPath],
      ['GET', '/user/identities/authorize?provider=google'],
      ['DELETE', '/user/identities/f7f6b2ad-9a64-4cb4-8a35-7a2e9b8ee8a1'],
    ] as const)
      t.match(await server.call(method, path, { token }), { body: { error_code: 'insufficient_aal' } }, path);
    t.match((await attacker.signOut({ scope: 'others' })).error, { code: 'insufficient_aal' });

    t.equal((await attacker.signOut()).error, null, 'an app cancels the sign-in');
    t.equal((await server.call('GET', '/user', { token })).status, 403, 'the session has ended');
    t.equal((await owner.refreshSession()).error, null);
    t.equal((await owner.signOut({ scope: 'others' })).error, null);
  },
);

t.test('verification ends sessions at aal1 and removes unverified factors', async (t) => {
  const server = await startAuthServer(t);
  const { client, factorId, secret } = await withFactor(server);
  const other = clientOf(server, 'other');
  await other.signInWithPassword(ada);
  await client.mfa.enroll({ factorType: 'totp', friendlyName: 'tablet' });
  await client.mfa.challengeAndVerify({ factorId, code: codeFor(secret, server.clock.nowMs()) });

  t.equal((await other.getUser()).error?.name, 'AuthSessionMissingError');
  t.match((await client.mfa.listFactors()).data?.all, [{ id: factorId }]);
  t.equal((await client.mfa.listFactors()).data?.all.length, 1);
});

t.test('removing the factor lowers the session to aal1', async (t) => {
  const server = await startAuthServer(t);
  const { client, factorId } = await verified(server);
  t.same((await client.mfa.unenroll({ factorId })).data, { id: factorId });
  await client.refreshSession();
  t.match((await client.mfa.getAuthenticatorAssuranceLevel()).data, {
    currentLevel: 'aal1',
    nextLevel: 'aal1',
    currentAuthenticationMethods: [{ method: 'password' }],
  });
  t.match((await client.mfa.unenroll({ factorId })).error, { code: 'mfa_factor_not_found', status: 404 });
});
