import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import type { HookName } from '../../src/config/hook-definitions.ts';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };
const phone = '4915112345678';

async function start(t: Test, names: readonly HookName[], variables: Readonly<Record<string, string>> = {}) {
  const hook = await startHookServer(t);
  const server = await startAuthServer(t, { ...hook.variables(...names), ...variables });
  return { hook, server };
}

t.test('hook can reject new users, however they are created', async (t) => {
  const { hook, server } = await start(t, ['BEFORE_USER_CREATED'], {
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  });
  const rejected = { status: 403, body: { error_code: 'unknown', msg: 'Only company emails' } };
  hook.answer({ body: { error: { http_code: 403, message: 'Only company emails' } } });
  t.match(await server.call('POST', '/signup', { body: ada }), rejected);
  t.match(hook.last(), {
    metadata: { name: 'before-user-created' },
    user: {
      email: ada.email,
      phone: '',
      role: 'authenticated',
      app_metadata: { provider: 'email', providers: ['email'] },
      identities: [],
      created_at: '0001-01-01T00:00:00Z',
      updated_at: '0001-01-01T00:00:00Z',
      is_anonymous: false,
    },
  });
  t.match(await server.call('POST', '/signup', { body: {} }), rejected, 'anonymous');
  t.match(await server.call('POST', '/otp', { body: { email: ada.email } }), rejected);
  const token = adminToken();
  t.match(await server.call('POST', '/invite', { token, body: { email: ada.email } }), rejected);
  const link = { type: 'signup', ...ada };
  t.match(await server.call('POST', '/admin/generate_link', { token, body: link }), rejected);
  t.equal((await server.call('GET', '/admin/users', { token })).headers.get('x-total-count'), '0');

  hook.answer({ body: { decision: 'reject' } });
  t.match(await server.call('POST', '/signup', { body: ada }), {
    status: 403,
    body: { error_code: 'unknown', msg: 'A hook rejected the request' },
  });
});

t.test('known users can sign in by code while the hook rejects all new ones', async (t) => {
  const { hook, server } = await start(t, ['BEFORE_USER_CREATED', 'SEND_EMAIL']);
  await signUp(server);
  hook.answer((event) => ({
    body: 'email_data' in event ? {} : { error: { http_code: 403, message: 'Closed' } },
  }));
  t.equal((await server.call('POST', '/otp', { body: { email: ada.email } })).status, 200);
  t.equal((await server.call('POST', '/otp', { body: { email: 'new@example.com' } })).status, 403);
});

t.test('hook for new users is called after the response', async (t) => {
  const { hook, server } = await start(t, ['AFTER_USER_CREATED']);
  hook.answer({ status: 500 });
  const { userId } = await signUp(server);
  await awaitUntil(() => hook.requests.length === 1, { what: 'the call of the hook' });
  t.match(hook.last(), {
    metadata: { name: 'after-user-created' },
    user: { id: userId, email: ada.email, identities: [{ provider: 'email' }] },
  });
  await awaitUntil(() => server.logs().includes('hook failed'), { what: 'the log' });
  await server.call('POST', '/signup', { body: ada });
  t.equal(hook.requests.length, 1, 'not for known users');
});

t.test('hook sends emails instead of the mail server', async (t) => {
  const { hook, server } = await start(t, ['SEND_EMAIL'], { MAILER_AUTOCONFIRM: 'false' });
  t.equal((await server.call('POST', '/signup', { body: ada })).status, 200);
  const event = hook.last();
  t.match(event, {
    metadata: { name: 'send-email' },
    user: { email: ada.email },
    email_data: {
      token: /^\d{6}$/,
      token_hash: /^[0-9a-f]{56}$/,
      redirect_to: 'https://example.com',
      email_action_type: 'signup',
      site_url: 'http://localhost:9999',
      token_new: '',
      token_hash_new: '',
    },
  });
  const { token } = event.email_data as { readonly token: string };
  const body = { type: 'signup', email: ada.email, token };
  t.equal((await server.call('POST', '/verify', { body })).status, 200);
});

t.test('emails of a secure email change are sent by one call', async (t) => {
  const { hook, server } = await start(t, ['SEND_EMAIL'], { MAILER_AUTOCONFIRM: 'false' });
  await server.call('POST', '/signup', { body: ada });
  const { token: code } = hook.last().email_data as { readonly token: string };
  const body = { type: 'signup', email: ada.email, token: code };
  const { body: session } = await server.call('POST', '/verify', { body });
  const newEmail = 'lovelace@example.com';
  const token = String(session.access_token);
  t.equal((await server.call('PUT', '/user', { token, body: { email: newEmail } })).status, 200);
  const event = hook.last();
  t.match(event, {
    user: { email: ada.email, new_email: newEmail },
    email_data: { email_action_type: 'email_change' },
  });
  const data = event.email_data as Readonly<Record<string, string>>;
  const verify = (email: string, code = '') =>
    server.call('POST', '/verify', { body: { type: 'email_change', email, token: code } });
  t.equal((await verify(ada.email, data.token)).status, 200, 'token belongs to the current address');
  t.match(await verify(newEmail, data.token_new), { status: 200, body: { user: { email: newEmail } } });
});

t.test('an email that the hook rejects is not sent', async (t) => {
  const { hook, server } = await start(t, ['SEND_EMAIL'], { MAILER_AUTOCONFIRM: 'false' });
  hook.answer({ body: { error: { http_code: 422, message: 'Undeliverable' } } });
  t.match(await server.call('POST', '/signup', { body: ada }), {
    status: 422,
    body: { error_code: 'unknown', msg: 'Undeliverable' },
  });
  hook.answer({ body: {} });
  t.equal((await server.call('POST', '/signup', { body: ada })).status, 200, 'can be repeated at once');
});

t.test('hook sends notifications', async (t) => {
  const { hook, server } = await start(t, ['SEND_EMAIL'], {
    MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
  });
  const { accessToken: token } = await signUp(server);
  await server.call('PUT', '/user', { token, body: { password: 'another horse' } });
  await awaitUntil(() => hook.requests.length === 1, { what: 'the call of the hook' });
  t.match(hook.last(), {
    user: { email: ada.email },
    email_data: { email_action_type: 'password_changed_notification', token: '', token_hash: '' },
  });
});

t.test('hook sends text messages instead of the gateway', async (t) => {
  const { hook, server } = await start(t, ['SEND_SMS'], {
    SMS_PROVIDER: 'twilio_verify',
    SMS_AUTOCONFIRM: 'false',
  });
  const sent = await server.call('POST', '/otp', { body: { phone, channel: 'whatsapp' } });
  t.equal(sent.status, 200);
  const event = hook.last();
  t.match(event, {
    metadata: { name: 'send-sms' },
    user: { phone },
    sms: { otp: /^\d{6}$/, phone, channel: 'whatsapp' },
  });
  const { otp: token } = event.sms as { readonly otp: string };
  t.equal((await server.call('POST', '/verify', { body: { type: 'sms', phone, token } })).status, 200);

  hook.answer({ body: { error: { http_code: 400, message: 'Not a mobile' } } });
  const other = { phone: '4915112345679' };
  t.match(await server.call('POST', '/otp', { body: other }), { status: 400, body: { msg: 'Not a mobile' } });
  hook.answer({ body: {} });
  t.equal((await server.call('POST', '/otp', { body: other })).status, 200, 'can be repeated at once');
});
