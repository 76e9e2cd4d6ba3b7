import postgres from 'postgres';
import t, { type Test } from 'tap';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { linkIn, startMailingServer } from '../helpers/mail-server.ts';

const lies = {
  'x-forwarded-for': '203.0.113.7',
  'x-real-ip': '203.0.113.7',
  'svc-forwarded-for': '203.0.113.7',
  'sb-forwarded-for': '203.0.113.7',
  forwarded: 'for=203.0.113.7',
};

async function addressesOf(t: Test, { databaseUrl }: AuthServer): Promise<unknown> {
  const sql = postgres(databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const [session] = await sql`select host(ip) as ip from auth.sessions`;
  const audits = await sql`select distinct ip_address from auth.audit_log_entries`;
  return { session: session?.ip as unknown, audit: audits.map(({ ip_address: ip }) => ip as unknown) };
}

async function signUpWith(server: AuthServer, headers: Readonly<Record<string, string>>): Promise<void> {
  const body = { email: 'ada@example.com', password: 'correct horse' };
  const { status, text } = await server.call('POST', '/signup', { body, headers });
  if (status !== 200) throw new Error(text);
}

t.test('forwarded addresses are ignored unless the proxy is trusted', async (t) => {
  const server = await startAuthServer(t);
  await signUpWith(server, lies);
  t.same(await addressesOf(t, server), { session: '127.0.0.1', audit: ['127.0.0.1'] });
});

t.test('client is the last address of X-Forwarded-For that is not a trusted proxy', async (t) => {
  const server = await startAuthServer(t, { SECURITY_TRUSTED_PROXIES: 'loopback,10.0.0.0/8' });
  await signUpWith(server, { 'x-forwarded-for': '192.0.2.66, 203.0.113.7, 10.1.2.3' });
  t.same(await addressesOf(t, server), { session: '203.0.113.7', audit: ['203.0.113.7'] });
});

t.test('malformed addresses are ignored', async (t) => {
  const server = await startAuthServer(t, { SECURITY_TRUSTED_PROXIES: 'loopback' });
  await signUpWith(server, { 'x-forwarded-for': "1.2.3.4'; drop table users; --" });
  t.same(await addressesOf(t, server), { session: '127.0.0.1', audit: ['127.0.0.1'] });
});

t.test('Svc-Forwarded-For is used only if enabled', async (t) => {
  const server = await startAuthServer(t, { SECURITY_SVC_FORWARDED_FOR_ENABLED: 'true' });
  await signUpWith(server, { 'svc-forwarded-for': '203.0.113.9, 10.0.0.1', 'x-forwarded-for': '192.0.2.1' });
  t.same(await addressesOf(t, server), { session: '203.0.113.9', audit: ['203.0.113.9'] });
});

t.test('links use the configured URL regardless of the Host header', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  await signUpWith(server, {
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'http',
    'x-original-host': 'evil.example',
    origin: 'https://evil.example',
    referer: 'https://evil.example/',
  });
  const mail = await smtp.mailTo('ada@example.com');
  t.equal(linkIn(mail).origin, 'http://localhost:9999');
  t.notMatch(mail.html, /evil/);
});

t.test('malformed request ids are replaced', async (t) => {
  const server = await startAuthServer(t, { REQUEST_ID_HEADER: 'X-Request-Id' });
  await server.call('GET', '/health', { headers: { 'x-request-id': 'abc-123' } });
  await server.call('GET', '/health', { headers: { 'x-request-id': '"},{"level":"error' } });
  t.match(server.logs(), /"request_id":"abc-123"/);
  t.notMatch(server.logs(), /\{\\"level/);
});
