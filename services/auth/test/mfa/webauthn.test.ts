import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t from 'tap';
import { type Answer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Authenticator, relyingParty } from '../helpers/authenticator.ts';

const server = await startAuthServer(t, {
  ...relyingParty,
  MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
  MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
  MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: '1000',
});
const sql = postgres(server.databaseUrl, { max: 1 });
t.teardown(() => sql.end());

const refused = {
  status: 422,
  body: { error_code: 'mfa_verification_failed', msg: 'Invalid WebAuthn response' },
};
const spent = { status: 422, body: { error_code: 'mfa_ip_address_mismatch' } };

type Behavior = Parameters<Authenticator['get']>[1];

async function newUser(): Promise<SignedIn & { readonly email: string }> {
  const email = `${randomUUID()}@example.com`;
  return { ...(await signUp(server, { email })), email };
}

async function signInAgain({ email }: { readonly email: string }): Promise<SignedIn> {
  const body = { email, password: 'correct horse' };
  return signedIn(await server.call('POST', '/token?grant_type=password', { body }));
}

async function enroll({ accessToken: token }: SignedIn): Promise<string> {
  const body = { factor_type: 'webauthn', friendly_name: randomUUID() };
  const answer = await server.call('POST', '/factors', { token, body });
  t.match(answer, { status: 200, body: { type: 'webauthn', friendly_name: body.friendly_name } });
  return String(answer.body.id);
}

async function challenge({ accessToken: token }: SignedIn, factorId: string) {
  const { status, text, body } = await server.call('POST', `/factors/${factorId}/challenge`, {
    token,
    body: {},
  });
  if (status !== 200) throw new Error(`no challenge: ${status} ${text}`);
  const { id, webauthn } = body as {
    readonly id: string;
    readonly webauthn: {
      readonly type: string;
      readonly credential_options: { readonly publicKey: { challenge: string } };
    };
  };
  return { id, type: webauthn.type, options: webauthn.credential_options.publicKey };
}

type Challenge = Awaited<ReturnType<typeof challenge>>;

function verify(
  { accessToken: token }: SignedIn,
  factorId: string,
  { id, type }: Pick<Challenge, 'id' | 'type'>,
  credential: object,
): Promise<Answer> {
  const body = { challenge_id: id, webauthn: { type, credential_response: credential } };
  return server.call('POST', `/factors/${factorId}/verify`, { token, body });
}

async function withFactor(user: SignedIn, behavior?: Behavior) {
  const factorId = await enroll(user);
  const authenticator = new Authenticator();
  const created = await challenge(user, factorId);
  const answer = await verify(user, factorId, created, authenticator.create(created.options, behavior));
  return { authenticator, factorId, created, answer };
}

async function use(session: SignedIn, factorId: string, authenticator: Authenticator, behavior?: Behavior) {
  const requested = await challenge(session, factorId);
  return verify(session, factorId, requested, authenticator.get(requested.options, behavior));
}

t.test('authenticator is enrolled and raises sessions to aal2', async (t) => {
  const user = await newUser();
  const factorId = await enroll(user);
  const authenticator = new Authenticator();
  const created = await challenge(user, factorId);
  t.match(created, {
    type: 'create',
    options: {
      rp: { id: 'example.com', name: 'Example' },
      user: { id: Buffer.from(user.userId).toString('base64url'), name: user.email },
      authenticatorSelection: { userVerification: 'preferred', residentKey: 'discouraged' },
    },
  });
  const verified = await verify(
    user,
    factorId,
    created,
    authenticator.create(created.options, { signCount: 1 }),
  );
  t.match(verified, { status: 200, body: { user: { factors: [{ id: factorId, status: 'verified' }] } } });
  const raised = signedIn(verified);
  t.match(decodeJwt(raised.accessToken), {
    aal: 'aal2',
    amr: [{ method: 'mfa/webauthn' }, { method: 'password' }],
  });
  const [row] =
    await sql`select web_authn_credential as c, web_authn_aaguid from auth.mfa_factors where id = ${factorId}`;
  const id = authenticator.credentialId.toString('base64');
  t.match(row?.c, { id, flags: { userVerified: true }, authenticator: { AAGUID: /^A+==$/, signCount: 1 } });

  const later = await signInAgain(user);
  const requested = await challenge(later, factorId);
  const descriptor = {
    id: authenticator.credentialId.toString('base64url'),
    transports: ['internal', 'hybrid'],
  };
  t.match(requested, { type: 'request', options: { rpId: 'example.com', allowCredentials: [descriptor] } });
  const response = authenticator.get(requested.options, { signCount: 2, isUserVerified: false });
  const answer = await verify(later, factorId, requested, response);
  t.match(decodeJwt(signedIn(answer).accessToken), { aal: 'aal2' });
  t.match(await verify(later, factorId, requested, response), spent, 'the response is accepted once');

  const second = await enroll(raised);
  t.match(await challenge(raised, second), { options: { excludeCredentials: [descriptor] } });
});

t.test('response for another origin, RP ID, challenge or authenticator is rejected', async (t) => {
  const user = await newUser();
  const wrong: readonly Behavior[] = [{ origin: 'https://evil.test' }, { rpId: 'evil.test' }];
  for (const behavior of wrong) t.match((await withFactor(user, behavior)).answer, refused);
  const { authenticator, factorId, answer } = await withFactor(user);
  const session = signedIn(answer);
  for (const behavior of wrong) t.match(await use(session, factorId, authenticator, behavior), refused);
  t.match(await use(session, factorId, new Authenticator()), refused);
  const [one, other] = [await challenge(session, factorId), await challenge(session, factorId)];
  t.match(await verify(session, factorId, one, authenticator.get(other.options)), refused);
  t.match(server.logs(), /"reason":"Unexpected authentication response origin \\"https:\/\/evil.test/);
  t.match(await use(session, factorId, authenticator), { status: 200 });
});

t.test('a verified factor does not accept another credential', async (t) => {
  const user = await newUser();
  const factorId = await enroll(user);
  const [first, second, third] = [
    await challenge(user, factorId),
    await challenge(user, factorId),
    await challenge(user, factorId),
  ];
  const create = (one: Challenge) => verify(user, factorId, one, new Authenticator().create(one.options));
  const answers = await Promise.all([create(first), create(second)]);
  // The other one is refused for the challenge or, once the factor is verified, for the type.
  t.equal(answers.filter(({ status }) => status === 200).length, 1, 'also concurrently');
  const session = signedIn(answers.find(({ status }) => status === 200) ?? answers[0]);
  const attacker = new Authenticator();
  const created = attacker.create(third.options);
  t.match(await verify(session, factorId, third, created), {
    status: 400,
    body: { error_code: 'validation_failed' },
  });
  t.match(await verify(session, factorId, { ...third, type: 'request' }, created), refused);
  t.match(
    await verify(session, factorId, { ...third, type: 'request' }, attacker.get(third.options)),
    refused,
  );
});

t.test('authenticator whose counter does not increase is rejected', async (t) => {
  const { authenticator, factorId, answer } = await withFactor(await newUser(), { signCount: 5 });
  const session = signedIn(answer);
  t.match(await use(session, factorId, authenticator, { signCount: 5 }), refused);
  t.match(await use(session, factorId, authenticator, { signCount: 6 }), { status: 200 });
  const answers = await Promise.all(
    [1, 2].map(() => use(session, factorId, authenticator, { signCount: 7 })),
  );
  t.same(answers.map(({ status }) => status).toSorted(), [200, 422], 'concurrently');
});

t.test('factor of another user and malformed responses are rejected', async (t) => {
  const [user, other] = [await newUser(), await newUser()];
  const factorId = await enroll(user);
  const created = await challenge(user, factorId);
  const credential = new Authenticator().create(created.options);
  t.match(await verify(other, factorId, created, credential), { status: 404 });
  t.match(await verify(other, await enroll(other), created, credential), {
    status: 422,
    body: { error_code: 'mfa_factor_not_found' },
  });
  const token = user.accessToken;
  for (const webauthn of [undefined, {}, { type: 'create' }, { type: 'other', credential_response: {} }])
    t.match(
      await server.call('POST', `/factors/${factorId}/verify`, {
        token,
        body: { challenge_id: created.id, webauthn },
      }),
      { status: 400, body: { error_code: 'validation_failed' } },
    );
  for (const malformed of [
    {},
    { response: null },
    { ...credential, response: { attestationObject: 'AAAA' } },
  ])
    t.match(await verify(user, factorId, created, malformed), refused);
  server.clock.advance(300_000);
  t.match(await verify(user, factorId, created, credential), {
    body: { error_code: 'mfa_challenge_expired' },
  });
});

t.test('without a relying party the server starts, and enrollment is rejected', async (t) => {
  const incomplete = await startAuthServer(t, {
    WEBAUTHN_RP_ID: 'example.com',
    MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
    MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
  });
  const { accessToken: token } = await signUp(incomplete);
  const body = { factor_type: 'webauthn', friendly_name: 'key' };
  t.match(await incomplete.call('POST', '/factors', { token, body }), {
    status: 422,
    body: {
      error_code: 'mfa_webauthn_enroll_not_enabled',
      msg: 'WebAuthn is not configured: set SVC_WEBAUTHN_RP_DISPLAY_NAME, SVC_WEBAUTHN_RP_ORIGINS',
    },
  });
});
