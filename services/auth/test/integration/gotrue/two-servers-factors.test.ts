// Two servers on one database take turns: second factors and passkeys.
import { Secret, TOTP } from 'otpauth';
import t, { type Test } from 'tap';
import { type SignedIn, signedIn, signUp } from '../../helpers/auth-server.ts';
import { Authenticator, relyingParty } from '../../helpers/authenticator.ts';
import { type Flow, type NextServer, runInTurns, startServerPair } from '../../helpers/two-servers.ts';

const password = 'correct horse';
const phone = '15005550001';
const phoneCode = '123456';

type Options = Parameters<Authenticator['create']>[0];

interface Factor {
  readonly id: string;
  readonly token: string;
}

async function enroll(next: NextServer, token: string, body: object): Promise<Factor & { secret: string }> {
  const answer = await next().call('POST', '/factors', { token, body });
  if (answer.status !== 200) throw new Error(`not enrolled: ${answer.status} ${answer.text}`);
  // Parsed boundary: the form of an enrolment, as the tests of the client library prove.
  const { id, totp } = answer.body as { readonly id: string; readonly totp?: { readonly secret: string } };
  return { id, token, secret: totp?.secret ?? '' };
}

async function challenge(next: NextServer, { id, token }: Factor) {
  const { status, text, body } = await next().call('POST', `/factors/${id}/challenge`, { token, body: {} });
  if (status !== 200) throw new Error(`no challenge: ${status} ${text}`);
  // Parsed boundary: the form of a challenge, as the tests of the client library prove.
  return body as unknown as {
    readonly id: string;
    readonly webauthn: { readonly credential_options: { readonly publicKey: Options } };
  };
}

async function verify(next: NextServer, { id, token }: Factor, body: object): Promise<SignedIn> {
  return signedIn(await next().call('POST', `/factors/${id}/verify`, { token, body }));
}

async function signInAgain(next: NextServer, email: string): Promise<string> {
  const body = { email, password };
  return signedIn(await next().call('POST', '/token?grant_type=password', { body })).accessToken;
}

/** The factor is verified, its session can be refreshed, and the factor can be removed. */
async function checkRaised(t: Test, next: NextServer, { id }: Factor, session: SignedIn): Promise<void> {
  const body = { refresh_token: session.refreshToken };
  const { accessToken: token } = signedIn(
    await next().call('POST', '/token?grant_type=refresh_token', { body }),
  );
  t.match(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()), { aal: 'aal2' });
  const user = await next().call('GET', '/user', { token });
  t.match(user, { status: 200, body: { factors: [{ id, status: 'verified' }] } });
  t.equal((await next().call('DELETE', `/factors/${id}`, { token })).status, 200);
  t.equal((await next().call('GET', '/user', { token })).body.factors, undefined);
}

const flows: Readonly<Record<string, Flow>> = {
  'TOTP factor': async (t, next, email) => {
    const { accessToken } = await signUp(next(), { email });
    const factor = await enroll(next, accessToken, { factor_type: 'totp' });
    const { id: challengeId } = await challenge(next, factor);
    const server = next();
    const timestamp = server.clock.nowMs();
    const code = TOTP.generate({ secret: Secret.fromBase32(factor.secret), timestamp });
    const raised = await verify(() => server, factor, { challenge_id: challengeId, code });
    await checkRaised(t, next, factor, raised);
  },
  'phone factor': async (t, next, email) => {
    const { accessToken } = await signUp(next(), { email });
    const factor = await enroll(next, accessToken, { factor_type: 'phone', phone: `+${phone}` });
    const answer = { challenge_id: (await challenge(next, factor)).id, code: phoneCode };
    const raised = await verify(next, factor, answer);
    await checkRaised(t, next, factor, raised);
  },
  'WebAuthn factor': async (t, next, email) => {
    const { accessToken } = await signUp(next(), { email });
    const authenticator = new Authenticator();
    const factor = await enroll(next, accessToken, { factor_type: 'webauthn', friendly_name: 'key' });
    const created = await challenge(next, factor);
    const creation = authenticator.create(created.webauthn.credential_options.publicKey);
    await verify(next, factor, {
      challenge_id: created.id,
      webauthn: { type: 'create', credential_response: creation },
    });
    const used = { ...factor, token: await signInAgain(next, email) };
    const requested = await challenge(next, used);
    const assertion = authenticator.get(requested.webauthn.credential_options.publicKey);
    const raised = await verify(next, used, {
      challenge_id: requested.id,
      webauthn: { type: 'request', credential_response: assertion },
    });
    await checkRaised(t, next, factor, raised);
  },
  passkey: async (t, next, email) => {
    const { accessToken: token, userId } = await signUp(next(), { email });
    const authenticator = new Authenticator();
    const start = async (kind: string, own: { readonly token?: string } = {}) => {
      const { status, text, body } = await next().call('POST', `/passkeys/${kind}/options`, {
        body: {},
        ...own,
      });
      if (status !== 200) throw new Error(`no options: ${status} ${text}`);
      // Parsed boundary: the form of a challenge, as the tests of the client library prove.
      return body as { readonly challenge_id: string; readonly options: Options };
    };
    const registration = await start('registration', { token });
    const registered = await next().call('POST', '/passkeys/registration/verify', {
      token,
      body: {
        challenge_id: registration.challenge_id,
        credential: authenticator.create(registration.options),
      },
    });
    t.equal(registered.status, 200, registered.text);
    const authentication = await start('authentication');
    const answer = {
      challenge_id: authentication.challenge_id,
      credential: authenticator.get(authentication.options),
    };
    const session = signedIn(await next().call('POST', '/passkeys/authentication/verify', { body: answer }));
    t.equal(session.userId, userId);
    t.not(
      (await next().call('POST', '/passkeys/authentication/verify', { body: answer })).status,
      200,
      'once',
    );
    const removed = await next().call('DELETE', `/passkeys/${registered.body.id}`, {
      token: session.accessToken,
    });
    t.ok(removed.status < 300, removed.text);
  },
};

t.test('each step of a second factor or a passkey can reach either of two servers', async (t) => {
  const pair = await startServerPair(t, {
    ...relyingParty,
    MFA_PHONE_ENROLL_ENABLED: 'true',
    MFA_PHONE_VERIFY_ENABLED: 'true',
    MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
    MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
    MFA_PHONE_MAX_FREQUENCY: '0s',
    SMS_TEST_OTP: `${phone}:${phoneCode}`,
    SMS_TEST_OTP_VALID_UNTIL: '2099-01-01T00:00:00Z',
  });
  await runInTurns(t, pair, flows);
});
