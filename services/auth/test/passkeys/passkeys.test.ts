import { randomUUID } from 'node:crypto';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { createKeyOf } from '../helpers/api-keys.ts';
import { type Answer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Authenticator, relyingParty } from '../helpers/authenticator.ts';
import { startMailingServer } from '../helpers/mail-server.ts';

const { server, smtp } = await startMailingServer(t, {
  ...relyingParty,
  API_KEYS_ENABLED: 'true',
  PASSKEY_MAX_PASSKEYS_PER_USER: '2',
  MAILER_AUTOCONFIRM: 'true',
  MAILER_NOTIFICATIONS_IDENTITY_LINKED_ENABLED: 'true',
  MAILER_NOTIFICATIONS_IDENTITY_UNLINKED_ENABLED: 'true',
  EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  RATE_LIMIT_PASSKEY: '1000',
  RATE_LIMIT_OTP: '1000',
});
const sql = postgres(server.databaseUrl, { max: 1 });
t.teardown(() => sql.end());

const refused = { status: 400, body: { error_code: 'webauthn_verification_failed' } };
const challengeNotFound = { status: 400, body: { error_code: 'webauthn_challenge_not_found' } };

type Behavior = Parameters<Authenticator['get']>[1];

interface Challenge {
  readonly challenge_id: string;
  readonly options: { readonly challenge: string; readonly user: { readonly id: string } };
}

function newUser(): Promise<SignedIn & { readonly email: string }> {
  const email = `${randomUUID()}@example.com`;
  return signUp(server, { email }).then((user) => ({ ...user, email }));
}

function challenged({ status, text, body }: Answer): Challenge {
  if (status !== 200) throw new Error(`no challenge: ${status} ${text}`);
  // Parsed boundary: the form of a challenge, as the tests of the client library prove.
  return body as unknown as Challenge;
}

async function challengeFor(kind: 'registration' | 'authentication', token?: string): Promise<Challenge> {
  const options = { body: {}, ...(token !== undefined && { token }) };
  return challenged(await server.call('POST', `/passkeys/${kind}/options`, options));
}

function verify(
  kind: 'registration' | 'authentication',
  { challenge_id }: Pick<Challenge, 'challenge_id'>,
  credential: object,
  token?: string,
): Promise<Answer> {
  const body = { challenge_id, credential };
  return server.call('POST', `/passkeys/${kind}/verify`, { body, ...(token !== undefined && { token }) });
}

async function register(
  { accessToken }: SignedIn,
  { authenticator = new Authenticator(), behavior = {} as Behavior } = {},
) {
  const challenge = await challengeFor('registration', accessToken);
  const credential = authenticator.create(challenge.options, behavior);
  const answer = await verify('registration', challenge, credential, accessToken);
  return { authenticator, answer, passkeyId: String(answer.body.id) };
}

async function signIn(authenticator: Authenticator, behavior?: Behavior): Promise<Answer> {
  const challenge = await challengeFor('authentication');
  return verify('authentication', challenge, authenticator.get(challenge.options, behavior));
}

async function auditActions(userId: string): Promise<unknown[]> {
  const rows = await sql`select payload ->> 'action' as action from auth.audit_log_entries
    where payload ->> 'actor_id' = ${userId} order by action`;
  return rows.map(({ action }) => action);
}

t.test('passkey is registered, and signs the user in without a user name', async (t) => {
  const user = await newUser();
  const options = await server.call('POST', '/passkeys/registration/options', {
    token: user.accessToken,
    body: {},
  });
  t.match(options.body, {
    expires_at: Math.floor((server.clock.nowMs() + 300_000) / 1000),
    options: {
      rp: { id: 'example.com', name: 'Example' },
      user: { id: Buffer.from(user.userId).toString('base64url'), name: user.email, displayName: user.email },
      pubKeyCredParams: [{ alg: -8 }, { alg: -7 }, { alg: -257 }],
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      excludeCredentials: [],
    },
  });
  const challenge = challenged(options);
  const authenticator = new Authenticator();
  const registered = await verify(
    'registration',
    challenge,
    authenticator.create(challenge.options),
    user.accessToken,
  );
  t.match(registered, { status: 200, body: { friendly_name: 'Passkey', created_at: /^\d{4}-/ } });

  t.match(await challengeFor('authentication'), {
    options: { rpId: 'example.com', userVerification: 'required', allowCredentials: undefined },
  });
  const answer = await signIn(authenticator);
  const session = signedIn(answer);
  t.equal(session.userId, user.userId);
  t.match(decodeJwt(session.accessToken), { aal: 'aal1', amr: [{ method: 'passkey' }] });
  t.match(await server.call('GET', '/passkeys', { token: session.accessToken }), {
    status: 200,
    body: [{ id: registered.body.id, last_used_at: /^\d{4}-/ }],
  });
  t.match(await auditActions(user.userId), ['login', 'login', 'passkey_created', 'user_signedup']);
  await awaitUntil(() => smtp.mails().some(({ html }) => html.includes(`${user.email} with passkey`)), {
    what: 'the notification mail',
  });
});

t.test(
  'response from another origin, for another RP ID or challenge, or without user verification is rejected',
  async (t) => {
    const user = await newUser();
    const wrong: readonly NonNullable<Behavior>[] = [
      { origin: 'https://example.com.evil.test' },
      { origin: 'http://example.com' },
      { rpId: 'evil.test' },
      { isUserVerified: false },
    ];
    for (const behavior of wrong) t.match((await register(user, { behavior })).answer, refused);
    const { challenge_id, options } = await challengeFor('registration', user.accessToken);
    const other = await challengeFor('registration', user.accessToken);
    const forOther = new Authenticator().create(other.options);
    t.match(await verify('registration', { challenge_id }, forOther, user.accessToken), refused);
    t.match(await verify('registration', other, new Authenticator().get(options), user.accessToken), refused);

    const { authenticator } = await register(user, { behavior: { origin: 'https://app.example.com' } });
    for (const behavior of wrong) t.match(await signIn(authenticator, behavior), refused);
    const first = await challengeFor('authentication');
    const second = await challengeFor('authentication');
    t.match(await verify('authentication', first, authenticator.get(second.options)), refused);
    t.match(await signIn(authenticator), { status: 200 });
  },
);

t.test('challenge is accepted once, in time, and from its user only', async (t) => {
  const [user, other] = await Promise.all([newUser(), newUser()]);
  const authenticator = new Authenticator();
  const challenge = await challengeFor('registration', user.accessToken);
  const created = authenticator.create(challenge.options);
  t.match(await verify('registration', challenge, created, other.accessToken), challengeNotFound);
  t.match(await verify('authentication', challenge, created), challengeNotFound, 'in another ceremony');
  t.match(await verify('registration', challenge, created, user.accessToken), { status: 200 });
  t.match(await verify('registration', challenge, created, user.accessToken), challengeNotFound);

  const late = await challengeFor('authentication');
  const response = authenticator.get(late.options);
  server.clock.advance(300_000);
  t.match(await verify('authentication', late, response), {
    status: 400,
    body: { error_code: 'webauthn_challenge_expired' },
  });
  t.match(await verify('authentication', late, response), challengeNotFound);

  const shared = await challengeFor('authentication');
  const responses = [1, 2, 3, 4].map(() =>
    verify('authentication', shared, authenticator.get(shared.options)),
  );
  const statuses = (await Promise.all(responses)).map(({ status }) => status);
  t.same(statuses.toSorted(), [200, 400, 400, 400], 'concurrently');
});

t.test('authenticator whose counter does not increase is rejected', async (t) => {
  const { authenticator } = await register(await newUser(), { behavior: { signCount: 5 } });
  t.match(await signIn(authenticator, { signCount: 5 }), refused);
  t.match(await signIn(authenticator, { signCount: 7 }), { status: 200 });
  t.match(await signIn(authenticator, { signCount: 6 }), refused);
  t.match(await signIn(authenticator, { signCount: 0 }), refused);
  const answers = await Promise.all([1, 2, 3].map(() => signIn(authenticator, { signCount: 8 })));
  t.same(answers.map(({ status }) => status).toSorted(), [200, 400, 400], 'concurrently');
  t.match(server.logs(), /"reason":"Response counter value 6 was lower than expected 7"/);
});

t.test('unknown credential, forged signature and wrong user handle have the same response', async (t) => {
  const { authenticator } = await register(await newUser());
  const other = await register(await newUser());
  const challenge = await challengeFor('authentication');
  const forged = { ...new Authenticator().get(challenge.options), id: '', rawId: '' };
  forged.id = forged.rawId = authenticator.credentialId.toString('base64url');
  const foreignHandle = Buffer.from(randomUUID()).toString('base64url');
  const answers = [
    await signIn(new Authenticator()),
    await verify('authentication', challenge, forged),
    await signIn(authenticator, { userHandle: foreignHandle }),
    await signIn(authenticator, { userHandle: '' }),
    await verify('authentication', await challengeFor('authentication'), {}),
    await verify('authentication', await challengeFor('authentication'), { id: 7, response: [] }),
  ];
  t.match(answers[0], refused);
  for (const { status, text } of answers) t.same({ status, text }, { status: 400, text: answers[0]?.text });
  t.match(await signIn(other.authenticator), { status: 200 });
});

t.test(
  'removed passkey and the passkey of a deleted, banned or unconfirmed user cannot sign in',
  async (t) => {
    const user = await newUser();
    const token = adminToken();
    const { authenticator, passkeyId } = await register(user);
    const second = await register(user);
    const removed = await server.call('DELETE', `/passkeys/${passkeyId}`, { token: user.accessToken });
    t.match(removed, { status: 204, text: '' });
    t.match(await signIn(authenticator), refused);

    const path = `/admin/users/${user.userId}`;
    await server.call('PUT', path, { token, body: { ban_duration: '1h' } });
    t.match(await signIn(second.authenticator), { status: 403, body: { error_code: 'user_banned' } });
    await server.call('PUT', path, { token, body: { ban_duration: 'none' } });
    await sql`update auth.users set email_confirmed_at = null where id = ${user.userId}`;
    t.match(await signIn(second.authenticator), { status: 403, body: { error_code: 'email_not_confirmed' } });
    await sql`update auth.users set email_confirmed_at = now(), phone = '15550001' where id = ${user.userId}`;
    t.match(await signIn(second.authenticator), { status: 403, body: { error_code: 'phone_not_confirmed' } });
    await sql`update auth.users set phone = null where id = ${user.userId}`;
    t.match(await signIn(second.authenticator), { status: 200 });
    await server.call('DELETE', path, { token, body: { should_soft_delete: true } });
    t.match(await signIn(second.authenticator), refused);
    t.same(await sql`select id from auth.webauthn_credentials where user_id = ${user.userId}`, []);
  },
);

t.test('user has a limited number of passkeys, and a credential belongs to one user', async (t) => {
  const [user, other] = await Promise.all([newUser(), newUser()]);
  const tooMany = { status: 422, body: { error_code: 'too_many_passkeys' } };
  const { authenticator } = await register(user);
  t.match((await register(other, { authenticator })).answer, {
    status: 422,
    body: { error_code: 'webauthn_credential_exists' },
  });
  const { options } = await challengeFor('registration', user.accessToken);
  t.match(options, { excludeCredentials: [{ id: authenticator.credentialId.toString('base64url') }] });

  const challenges = await Promise.all([1, 2, 3].map(() => challengeFor('registration', user.accessToken)));
  const answers = challenges.map((challenge) =>
    verify('registration', challenge, new Authenticator().create(challenge.options), user.accessToken),
  );
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  t.same(statuses.toSorted(), [200, 422, 422], 'also concurrently');
  t.match(await server.call('POST', '/passkeys/registration/options', { token: user.accessToken }), tooMany);
});

t.test('user renames and removes own passkeys only', async (t) => {
  const [user, other] = await Promise.all([newUser(), newUser()]);
  const { passkeyId } = await register(user);
  const path = `/passkeys/${passkeyId}`;
  const rename = (friendly_name: string, { accessToken: token }: SignedIn) =>
    server.call('PATCH', path, { token, body: { friendly_name } });
  const notFound = { status: 404, body: { error_code: 'validation_failed', msg: 'Passkey not found' } };
  t.match(await rename('laptop', user), { status: 200, body: { id: passkeyId, friendly_name: 'laptop' } });
  t.match(await rename('mine', other), notFound);
  t.match(await rename('', user), { status: 400 });
  t.match(await rename('n'.repeat(121), user), { status: 400 });
  t.match(await server.call('DELETE', path, { token: other.accessToken }), notFound);
  t.match(await server.call('GET', '/passkeys', { token: other.accessToken }), {
    status: 200,
    text: '[]',
  });
  t.match(await server.call('GET', '/passkeys', { token: user.accessToken }), {
    body: [{ friendly_name: 'laptop' }],
  });

  const admin = { token: adminToken() };
  const adminPath = `/admin/users/${user.userId}/passkeys`;
  t.match(await server.call('GET', adminPath, { token: user.accessToken }), { status: 403 });
  t.match(await server.call('GET', adminPath, admin), { status: 200, body: [{ id: passkeyId }] });
  t.match(await server.call('DELETE', `/admin/users/${other.userId}/passkeys/${passkeyId}`, admin), notFound);
  const { key } = await createKeyOf(server, { admin_scopes: ['users:write'] });
  const setRole = (role: string) =>
    server.call('PUT', `/admin/users/${user.userId}`, { ...admin, body: { role } });
  await setRole('supabase_admin');
  t.match(
    await server.call('DELETE', `${adminPath}/${passkeyId}`, { token: key }),
    { status: 403, body: { error_code: 'insufficient_scope' } },
    'an API key does not weaken the sign-in of administrators',
  );
  await setRole('authenticated');
  t.match(await server.call('DELETE', `${adminPath}/${passkeyId}`, { token: key }), { status: 204 });
  t.match(await server.call('GET', adminPath, admin), { status: 200, text: '[]' });
});

t.test('passkeys are managed by permanent and confirmed users with full assurance only', async (t) => {
  const options = (token: string) => server.call('POST', '/passkeys/registration/options', { token });
  const anonymous = signedIn(await server.call('POST', '/signup', { body: {} }));
  t.match(await options(anonymous.accessToken), { status: 403, body: { error_code: 'no_authorization' } });
  t.match(await server.call('POST', '/passkeys/registration/options'), { status: 401 });

  const user = await newUser();
  const { passkeyId } = await register(user);
  await sql`insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, secret, created_at, updated_at)
    values (gen_random_uuid(), ${user.userId}, '', 'totp', 'verified', '', now(), now())`;
  const lowAssurance = { status: 403, body: { error_code: 'insufficient_aal' } };
  t.match(await options(user.accessToken), lowAssurance);
  t.match(await server.call('DELETE', `/passkeys/${passkeyId}`, { token: user.accessToken }), lowAssurance);
  await sql`delete from auth.mfa_factors where user_id = ${user.userId}`;
  await sql`update auth.users set email_confirmed_at = null where id = ${user.userId}`;
  t.match(await options(user.accessToken), { status: 403, body: { error_code: 'email_not_confirmed' } });
  await sql`update auth.users set email_confirmed_at = now() where id = ${user.userId}`;
  await sql`update auth.users set is_sso_user = true where id = ${user.userId}`;
  t.match(await options(user.accessToken), { status: 422, body: { error_code: 'validation_failed' } });
});

t.test('attestation statement is not verified, so its certificates cause no requests', async (t) => {
  const { answer } = await register(await newUser(), { behavior: { attestation: 'apple' } });
  t.match(answer, { status: 200 });
});

t.test('settings allow passkeys without user verification, and limit challenges', async (t) => {
  const lenient = await startAuthServer(t, {
    ...relyingParty,
    PASSKEY_USER_VERIFICATION: 'preferred',
    RATE_LIMIT_PASSKEY: '2',
    RATE_LIMIT_HEADER: 'x-client',
  });
  const { accessToken: token } = await signUp(lenient);
  const authenticator = new Authenticator();
  const behavior = { isUserVerified: false };
  const start = async (kind: string) =>
    challenged(await lenient.call('POST', `/passkeys/${kind}/options`, { token, body: {} }));
  const { challenge_id, options } = await start('registration');
  t.match(options, { authenticatorSelection: { userVerification: 'preferred' } });
  const body = { challenge_id, credential: authenticator.create(options, behavior) };
  t.match(await lenient.call('POST', '/passkeys/registration/verify', { token, body }), { status: 200 });
  const later = await start('authentication');
  const credential = authenticator.get(later.options, behavior);
  const answer = await lenient.call('POST', '/passkeys/authentication/verify', {
    body: { challenge_id: later.challenge_id, credential },
  });
  t.match(answer, { status: 200 });
  t.match(await lenient.call('POST', '/passkeys/authentication/options'), {
    status: 429,
    body: { error_code: 'over_request_rate_limit' },
  });
});

t.test('mails about passkeys are in the language of the request', async (t) => {
  const { accessToken: token, email } = await newUser();
  const headers = { 'accept-language': 'de' };
  const challenge = await challengeFor('registration', token);
  const credential = new Authenticator().create(challenge.options, {});
  const body = { challenge_id: challenge.challenge_id, credential };
  const { body: passkey } = await server.call('POST', '/passkeys/registration/verify', {
    body,
    token,
    headers,
  });
  t.equal((await server.call('DELETE', `/passkeys/${String(passkey.id)}`, { token, headers })).status, 204);
  const mails = () => smtp.mails().filter(({ html }) => html.includes(email));
  await awaitUntil(() => mails().length === 2, { what: 'both mails' });
  t.same(
    mails().map(({ html }) => /<html lang="(\w+)"/.exec(html)?.[1]),
    ['de', 'de'],
  );
});
