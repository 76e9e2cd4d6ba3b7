import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../../helpers/admin.ts';
import { signedIn } from '../../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../../helpers/mail-server.ts';

t.test('log and audit log contain no passwords, tokens or codes', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const email = 'ada@example.com';
  const password = 'correct horse battery';
  await server.call('POST', '/signup', { body: { email, password, data: { note: 'kept-to-itself' } } });
  const mail = await smtp.mailTo(email);
  const link = linkIn(mail);
  const code = codeIn(mail);
  const followed = await server.call('GET', link.pathname + link.search);
  const fragment = new URLSearchParams(new URL(followed.headers.get('location') ?? '').hash.slice(1));
  const session = signedIn(
    await server.call('POST', '/token?grant_type=password', { body: { email, password } }),
  );
  await server.call('POST', '/token?grant_type=refresh_token', {
    body: { refresh_token: session.refreshToken },
  });
  await server.call('POST', '/token?grant_type=password', { body: { email, password: 'wrong-password' } });
  await server.call('PUT', '/user', { token: session.accessToken, body: { password: 'another good one' } });
  await server.call('GET', `/user?apikey=in-the-query`, { token: session.accessToken });
  await server.call('POST', '/token', { body: '{"refresh_token":"in-a-broken-body"' });
  await server.call('GET', '/admin/users', { token: adminToken() });

  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const entries =
    await sql`select payload ->> 'action' as action, payload::text as text from auth.audit_log_entries`;
  const actions = entries.map(({ action }) => String(action));
  for (const action of ['user_signedup', 'login', 'token_refreshed', 'user_modified'])
    t.ok(actions.includes(action), `${action} is in the audit log`);
  const audit = entries.map(({ text }) => String(text)).join('\n');

  for (const [what, secret] of Object.entries({
    password,
    'wrong password': 'wrong-password',
    'new password': 'another good one',
    'hash of the link': link.searchParams.get('token'),
    'access token of the link': fragment.get('access_token'),
    'refresh token of the link': fragment.get('refresh_token'),
    'access token': session.accessToken,
    'refresh token': session.refreshToken,
    'admin token': adminToken(),
    'key in a query': 'in-the-query',
    'token in a broken body': 'in-a-broken-body',
    metadata: 'kept-to-itself',
  })) {
    t.ok(secret, what);
    t.notOk(server.logs().includes(String(secret)), `log: ${what}`);
    t.notOk(audit.includes(String(secret)), `audit log: ${what}`);
  }
  t.notMatch(server.logs(), new RegExp(`"${code}"|\\b${code}\\b`), 'log: code');
  t.notOk(server.logs().includes(email), 'log: address');
});

t.test('database contents cannot be used to sign in', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const email = 'ada@example.com';
  await server.call('POST', '/signup', { body: { email, password: 'correct horse' } });
  const mail = await smtp.mailTo(email);
  const code = codeIn(mail);
  const link = String(linkIn(mail).searchParams.get('token'));
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const rows =
    await sql`select u::text as u, o::text as o from auth.users u join auth.one_time_tokens o on o.user_id = u.id`;
  t.match(rows, [{ u: /\$argon2id\$/ }]);
  t.notMatch(JSON.stringify(rows), new RegExp(`correct horse|[,(]${code}[,)]|${link}`));

  const [{ kept } = { kept: '' }] = await sql`select token_hash as kept from auth.one_time_tokens`;
  for (const token_hash of [kept, `pkce_${kept}`, kept.replace('sha256:', '')])
    t.match(await server.call('POST', '/verify', { body: { type: 'signup', token_hash } }), {
      status: 403,
      body: { error_code: 'otp_expired' },
    });
  t.equal((await server.call('POST', '/verify', { body: { type: 'signup', token_hash: link } })).status, 200);
});

t.test('links and codes of older servers stay valid', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  for (const use of ['link', 'code', 'PKCE link'] as const) {
    const email = `${use.replace(' ', '').toLowerCase()}@example.com`;
    const pkce = { code_challenge: 'v'.repeat(43), code_challenge_method: 'plain' };
    const signUp = { email, password: 'correct horse', ...(use === 'PKCE link' && pkce) };
    await server.call('POST', '/signup', { body: signUp });
    const mail = await smtp.mailTo(email);
    const { pathname, search, searchParams } = linkIn(mail);
    const sent = String(searchParams.get('token'));
    await sql`update auth.one_time_tokens set token_hash = ${sent} where relates_to = ${email}`;
    if (use === 'PKCE link') {
      const { headers } = await server.call('GET', pathname + search);
      t.match(headers.get('location'), /\?code=/);
    } else {
      const shown = use === 'link' ? { token_hash: sent } : { email, token: codeIn(mail) };
      t.equal(
        (await server.call('POST', '/verify', { body: { type: 'signup', ...shown } })).status,
        200,
        use,
      );
    }
    t.same(await sql`select 1 from auth.one_time_tokens where relates_to = ${email}`, [], 'spent');
  }
});
