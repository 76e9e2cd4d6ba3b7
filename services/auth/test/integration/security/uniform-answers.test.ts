import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import type { Answer, AuthServer } from '../../helpers/auth-server.ts';
import { codeIn, type MailingServer, startMailingServer } from '../../helpers/mail-server.ts';
import { textMessages } from '../../helpers/text-messages.ts';

const known = 'ada@example.com';
const unknown = 'eve@example.com';
const unconfirmed = 'bob@example.com';
const password = 'correct horse';
const hourMs = 3_600_000;
const minuteMs = 60_000;

function post(server: AuthServer, path: string, body: object): Promise<Answer> {
  return server.call('POST', path, { body });
}

/** A server with a confirmed and an unconfirmed user, an hour after they signed up. */
async function uniformServer(
  test: Parameters<typeof startMailingServer>[0],
  variables: Readonly<Record<string, string>> = {},
): Promise<MailingServer> {
  const started = await startMailingServer(test, { SECURITY_UNIFORM_ANSWERS: 'true', ...variables });
  const { server, smtp } = started;
  for (const email of [known, unconfirmed]) await post(server, '/signup', { email, password });
  const token = codeIn(await smtp.mailTo(known));
  await post(server, '/verify', { type: 'signup', email: known, token });
  await smtp.mailTo(unconfirmed);
  server.clock.advance(hourMs);
  return started;
}

/** A response without varying parts and without values of the request. */
function shapeOf({ status, text, headers }: Answer, email: string): unknown {
  return {
    status,
    retryAfter: headers.get('retry-after'),
    body: text
      .replaceAll(email, 'EMAIL')
      .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID')
      .replaceAll(/20\d\d-[0-9T:.-]+Z/g, 'TIME'),
  };
}

t.test('every response, and every later one, is the same for known and unknown contacts', async (t) => {
  const requests: readonly (readonly [string, object])[] = [
    ['/signup', { password, data: { name: 'x' } }],
    ['/otp', {}],
    ['/otp', { create_user: false }],
    ['/magiclink', {}],
    ['/recover', {}],
    ['/resend', { type: 'signup' }],
    ['/resend', { type: 'email_change' }],
  ];
  for (const [path, members] of requests) {
    const { server } = await uniformServer(t);
    const name = `${path} ${JSON.stringify(members)}`;
    const rounds = [0, 30_000, 2 * minuteMs, 15 * minuteMs];
    for (const advance of rounds) {
      server.clock.advance(advance);
      const shapes = [];
      for (const email of [known, unconfirmed, unknown])
        shapes.push(shapeOf(await post(server, path, { email, ...members }), email));
      t.same(shapes[1], shapes[0], `${name}, not confirmed, after ${advance} ms`);
      t.same(shapes[2], shapes[0], `${name}, unknown, after ${advance} ms`);
      const status = advance === 30_000 ? 429 : advance === 2 * minuteMs && /signup/.test(name) ? 429 : 200;
      t.match(shapes[0], { status }, `${name} after ${advance} ms`);
    }
  }
});

t.test('each sign-up with an address returns a different id', async (t) => {
  const { server } = await uniformServer(t);
  for (const email of [known, unconfirmed, unknown]) {
    const ids = [];
    for (let count = 1; count <= 3; count++) {
      ids.push((await post(server, '/signup', { email, password })).body.id);
      server.clock.advance(hourMs);
    }
    t.equal(new Set(ids).size, 3, email);
  }
});

t.test('quota of mails applies to known and unknown contacts', async (t) => {
  const { server } = await uniformServer(t, { RATE_LIMIT_EMAIL_SENT: '2' });
  t.equal((await post(server, '/recover', { email: unknown })).status, 200);
  t.equal((await post(server, '/recover', { email: known })).status, 200);
  for (const email of [unconfirmed, 'unknown@example.com'])
    t.match(await post(server, '/recover', { email }), {
      status: 429,
      body: { error_code: 'over_email_send_rate_limit', msg: 'email rate limit exceeded' },
    });
});

t.test('rejecting or hanging mail server does not disclose users', async (t) => {
  const { server, smtp } = await uniformServer(t);
  smtp.hold(true);
  for (const email of [known, unknown]) t.same((await post(server, '/recover', { email })).body, {});
  smtp.refuse('550 no');
  smtp.hold(false);
});

t.test('with uniform answers disabled sign-up does not disclose users', async (t) => {
  const { server } = await uniformServer(t);
  const closed = await startMailingServer(t, { SECURITY_UNIFORM_ANSWERS: 'true', DISABLE_SIGNUP: 'true' });
  t.same((await post(closed.server, '/otp', { email: unknown })).body, {});
  t.same((await post(server, '/otp', { email: unknown, create_user: false })).body, {});
});

t.test('response has no message id for phones', async (t) => {
  const texts = await textMessages(t);
  const { server } = await startMailingServer(t, { ...texts.variables, SECURITY_UNIFORM_ANSWERS: 'true' });
  await post(server, '/signup', { phone: '15005550001', password });
  server.clock.advance(hourMs);
  for (const phone of ['15005550001', '15005550009']) {
    t.match(await post(server, '/resend', { type: 'sms', phone }), { status: 200, text: '{}' });
    t.match(await post(server, '/resend', { type: 'sms', phone }), {
      status: 429,
      body: { error_code: 'over_sms_send_rate_limit' },
    });
  }
  // Messages are sent in the background.
  await awaitUntil(() => texts.texts.length >= 2, { what: 'the messages' });
  t.equal(texts.texts.length, 2);
});

t.test('known users still get their mails', async (t) => {
  const { server, smtp } = await uniformServer(t);
  await post(server, '/recover', { email: known });
  const token = codeIn(await smtp.mailTo(known, 2));
  t.equal((await post(server, '/verify', { type: 'recovery', email: known, token })).status, 200);
});
