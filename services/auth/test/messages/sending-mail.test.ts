import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { type AuthServer, signedIn } from '../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../helpers/mail-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

function signUp(server: AuthServer, more: Readonly<Record<string, unknown>> = {}, query = '') {
  return server.call('POST', `/signup${query}`, { body: { ...ada, ...more } });
}

t.test('mail has sender, recipient, headers, a link and a code', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    SMTP_SENDER_NAME: 'Äuth, "Inc"',
    SMTP_HEADERS: '{"X-Type":["$messageType"],"X-Two":["a","b"]}',
  });
  const { status, body } = await signUp(server, {}, '?redirect_to=https://example.com/welcome');
  t.equal(status, 200);
  t.match(body, { email: ada.email, confirmation_sent_at: String });

  const mail = await smtp.mailTo(ada.email);
  t.match(mail, { from: 'auth@example.com', to: [ada.email], subject: 'Confirm Your Signup' });
  t.match(mail.headers.get('from'), ['Äuth, "Inc" <auth@example.com>']);
  t.same([mail.headers.get('x-type'), mail.headers.get('x-two')], [['confirmation'], ['a', 'b']]);
  t.match(mail.headers.get('content-type'), [/^multipart\/alternative/]);
  t.match(codeIn(mail), /^\d{6}$/);
  const link = linkIn(mail);
  t.equal(link.origin + link.pathname, 'http://localhost:9999/verify');
  t.match(link.search, /^\?token=[0-9a-f]{56}&type=signup&redirect_to=https:\/\/example\.com\/welcome$/);
});

t.test('links start with the host of the request, if it is in the list', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    MAILER_EXTERNAL_HOSTS: 'auth.example.com,localhost',
    API_EXTERNAL_URL: 'https://api.example.com',
  });
  for (const [host, protocol, origin] of [
    ['auth.example.com', 'http', 'https://auth.example.com'],
    ['localhost', 'http', 'http://localhost'],
    ['evil.example', 'https', 'https://api.example.com'],
    ['', '', 'https://api.example.com'],
  ] as const) {
    const email = `${origin.length}-${host.length}@example.com`;
    const headers = { 'x-forwarded-host': host, 'x-forwarded-proto': protocol };
    await server.call('POST', '/signup', { body: { ...ada, email }, headers: host === '' ? {} : headers });
    t.equal(linkIn(await smtp.mailTo(email)).origin, origin, host);
  }
});

t.test('links use the configured paths, also behind a prefix', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    API_EXTERNAL_URL: 'https://api.example.com/auth/v1',
    MAILER_URLPATHS_CONFIRMATION: '/auth/v1/verify',
    MAILER_URLPATHS_RECOVERY: '/reset',
    MAILER_OTP_LENGTH: '8',
    MAILER_SUBJECTS_CONFIRMATION: '{{ .Token }} for {{ .Data.name }} at {{ .SiteURL }}',
  });
  await signUp(server, { data: { name: 'Ada & <b>' } }, '?redirect_to=https://example.com/x%3Fa=b%26c=d');
  const confirmation = await smtp.mailTo(ada.email);
  const link = linkIn(confirmation);
  t.equal(link.origin + link.pathname, 'https://api.example.com/auth/v1/verify');
  t.equal(link.searchParams.get('redirect_to'), 'https://example.com/x?a=b&c=d');
  const code = codeIn(confirmation);
  t.match(code, /^\d{8}$/);
  t.equal(confirmation.subject, `${code} for Ada & <b> at https://example.com`);

  await server.call('POST', '/verify', { body: { type: 'signup', email: ada.email, token: code } });
  await server.call('POST', '/recover', { body: { email: ada.email } });
  t.equal(linkIn(await smtp.mailTo(ada.email, 2)).pathname, '/reset');
});

t.test('redirect target outside of the allow list is replaced by SITE_URL and logged', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    URI_ALLOW_LIST: 'https://{app,admin}.example.org/**,my-app://login',
  });
  const targetOf = async (query: string, headers: Record<string, string>, count: number) => {
    server.clock.advance(60_000);
    await server.call('POST', `/otp${query}`, { body: { email: ada.email }, headers });
    return linkIn(await smtp.mailTo(ada.email, count)).searchParams.get('redirect_to');
  };
  await signUp(server);
  const { html } = await smtp.mailTo(ada.email);
  await server.call('POST', '/verify', {
    body: { type: 'signup', email: ada.email, token: codeIn({ html }) },
  });

  t.equal(await targetOf('?redirect_to=https://admin.example.org/x', {}, 2), 'https://admin.example.org/x');
  t.equal(await targetOf('', { redirect_to: 'my-app://login' }, 3), 'my-app://login');
  t.equal(await targetOf('', { referer: 'https://app.example.org/page' }, 4), 'https://app.example.org/page');
  t.equal(await targetOf('?redirect_to=https://evil.test/', {}, 5), 'https://example.com');
  t.equal(await targetOf('', { referer: 'https://evil.test/' }, 6), 'https://example.com');
  const refusals =
    server
      .logs()
      .match(/.*rejected redirect_to.*/g)
      ?.join('\n') ?? '';
  t.match(refusals, /"reason":"it matches neither SITE_URL nor SVC_URI_ALLOW_LIST"/);
  t.notMatch(refusals, /evil\.test/, 'it may carry a code or a token');
});

t.test('authenticates with the mail server if offered', async (t) => {
  const auth = { user: 'us', pass: 'secret' };
  const right = await startMailingServer(t, { SMTP_USER: 'us', SMTP_PASS: 'secret' }, { auth });
  t.equal((await signUp(right.server)).status, 200);
  const wrong = await startMailingServer(t, { SMTP_USER: 'us', SMTP_PASS: 'wrong' }, { auth });
  t.equal((await signUp(wrong.server)).status, 500);
  const open = await startMailingServer(t, { SMTP_USER: 'us', SMTP_PASS: 'secret' });
  t.equal((await signUp(open.server)).status, 200);
  for (const { server } of [right, wrong, open]) t.notMatch(server.logs(), /"?secret"?/);
});

t.test('request headers do not influence links', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const headers = {
    'x-forwarded-host': 'evil.test',
    'x-forwarded-proto': 'https',
    forwarded: 'host=evil.test',
    'x-original-host': 'evil.test',
  };
  await server.call('POST', '/signup', { body: ada, headers });
  t.equal(linkIn(await smtp.mailTo(ada.email)).origin, 'http://localhost:9999');
});

t.test('values set by users cannot inject headers', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    MAILER_SUBJECTS_CONFIRMATION: 'For {{ .Data.name }}',
  });
  const injected = 'Ada\r\nBcc: eve@evil.test\r\n\r\n<b>\u2028x';
  for (const email of ['ada@example.com\r\nBcc: eve@evil.test', 'ada@example.com,eve@evil.test', '<a@b.co>'])
    t.match(await signUp(server, { email }), { status: 400 }, JSON.stringify(email));
  await signUp(server, { data: { name: injected } });
  const mail = await smtp.mailTo(ada.email);
  t.equal(mail.subject, 'For Ada Bcc: eve@evil.test <b> x');
  t.equal(mail.headers.has('bcc'), false);
  t.same(mail.to, [ada.email]);

  await signUp(server, { email: 'b@example.com', data: { name: 'x'.repeat(3000) } });
  t.equal((await smtp.mailTo('b@example.com')).subject.length, 250);
});

t.test('templates are fetched from SITE_URL', async (t) => {
  const { port } = await startWebServer(t, ({ url }, response) =>
    response.end(`${url}: <a href="{{ .ConfirmationURL }}">{{ .Data.name }}</a> {{ .SendingTo }}`),
  );
  const site = { SITE_URL: `http://127.0.0.1:${port}`, MAILER_TEMPLATES_CONFIRMATION: '/confirm.html' };
  const refused = await startMailingServer(t, site);
  await signUp(refused.server);
  t.match(codeIn(await refused.smtp.mailTo(ada.email)), /\d{6}/, 'the built-in one: the address is private');
  t.match(refused.server.logs(), /"level":"error".*which is not public.*mail template unavailable/);

  const { server, smtp } = await startMailingServer(t, {
    ...site,
    MAILER_TEMPLATE_PRIVATE_HOSTS: '127.0.0.1',
  });
  await signUp(server, { data: { name: '<Ada>' } });
  const { html } = await smtp.mailTo(ada.email);
  t.match(
    html,
    /^\/confirm\.html: <a href="http:\/\/localhost:9999\/verify\?token=.*">&lt;Ada&gt;<\/a> ada@example\.com\s*$/,
  );
});

t.test('invalid template fails the start with its line', async (t) => {
  const { port } = await startWebServer(t, (_request, response) =>
    response.end('<p>\n<a href="{{ .ConfirmationURL }}>here</a></p>'),
  );
  const site = { SITE_URL: `http://127.0.0.1:${port}`, MAILER_TEMPLATE_PRIVATE_HOSTS: '127.0.0.1' };
  await t.rejects(startMailingServer(t, { ...site, MAILER_TEMPLATES_RECOVERY: '/r.html' }), {
    message: /RECOVERY \(\/r\.html\): ends in a non-text context/,
  });
});

t.test('template that fails to render is logged, counted and replaced', async (t) => {
  const { port } = await startWebServer(t, (_request, response) =>
    response.end('{{ range .Data.name }}{{ end }}'),
  );
  const { server, smtp } = await startMailingServer(t, {
    SITE_URL: `http://127.0.0.1:${port}`,
    MAILER_TEMPLATE_PRIVATE_HOSTS: '127.0.0.1',
    MAILER_TEMPLATES_CONFIRMATION: '/c.html',
    MAILER_SUBJECTS_CONFIRMATION: '{{ .Data.name.first }}',
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'prometheus',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
  });
  await signUp(server, { data: { name: 'Ada' } });
  const mail = await smtp.mailTo(ada.email);
  t.equal(mail.subject, 'Confirm Your Signup');
  t.match(codeIn(mail), /\d{6}/);
  t.match(server.logs(), /range can't iterate over string.*mail template not rendered/);
  const metrics = await fetch(/"url":"([^"]+)"/.exec(server.logs())?.[1] ?? '');
  t.match(await metrics.text(), /^auth_mail_template_failures_total\{reason="render"\} 2$/m);
});

t.test('password change sends a notification if configured', async (t) => {
  for (const enabled of ['true', 'false']) {
    const { server, smtp } = await startMailingServer(t, {
      MAILER_AUTOCONFIRM: 'true',
      MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: enabled,
    });
    const { accessToken: token } = signedIn(await signUp(server));
    const changed = await server.call('PUT', '/user', { token, body: { password: 'another horse' } });
    t.equal(changed.status, 200);
    await server.stop();
    t.same(
      smtp.mails().map(({ to, subject }) => [...to, subject]),
      enabled === 'true' ? [[ada.email, 'Your password has been changed']] : [],
    );
  }
});

t.test('email change notifies the previous address, phone change the email', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    MAILER_AUTOCONFIRM: 'true',
    MAILER_NOTIFICATIONS_EMAIL_CHANGED_ENABLED: 'true',
    MAILER_NOTIFICATIONS_PHONE_CHANGED_ENABLED: 'true',
  });
  const { accessToken: token } = signedIn(await signUp(server));
  const email = 'lovelace@example.com';
  await server.call('PUT', '/user', { token, body: { email } });
  const confirmation = await smtp.mailTo(email);
  const body = { type: 'email_change', email, token: codeIn(confirmation) };
  t.equal((await server.call('POST', '/verify', { body })).status, 200);
  await smtp.mailTo(ada.email);
  await server.call('PUT', '/user', { token, body: { phone: '+15551234' } });
  await server.stop();
  t.match(
    smtp.mails().map(({ to: [to], subject }) => `${to}: ${subject}`),
    [
      `${email}: Confirm Email Change`,
      `${ada.email}: Your email address has been changed`,
      `${email}: Your phone number has been changed`,
    ],
  );
  t.match(smtp.mails()[1]?.html, /from ada@example\.com to lovelace@example\.com/);
});
