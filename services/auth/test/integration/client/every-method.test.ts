// Calls every public method of the published client library once.
import { AuthClient } from '@supabase/auth-js';
import { startSmtp } from '@tollgate/testkit/smtp';
import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { adminToken } from '../../helpers/admin.ts';
import { Browser } from '../../helpers/browser.ts';
import {
  apiUrl,
  githubUser,
  googleClaims,
  siteUrl,
  startWithProviders,
} from '../../helpers/provider-sign-in.ts';
import { ethereumAccount } from '../../helpers/wallets.ts';

/** Private in TypeScript, or of features with tests of their own. */
const otherMethods =
  /^(?:constructor|_.*|isThrowOnErrorEnabled|fetchJwk|linkIdentity(?:OAuth|IdToken)|signInWith(?:Ethereum|Solana|Passkey)|registerPasskey)$/;

/** The names of the public methods of a class or namespace. */
function methods(target: object): string[] {
  const prototype: object = Object.getPrototypeOf(target);
  const isClass = prototype !== Object.prototype;
  return (isClass ? Object.getOwnPropertyNames(prototype) : Object.keys(target)).filter(
    (name) => !otherMethods.test(name) && typeof Reflect.get(target, name) === 'function',
  );
}

/** Records which methods are called. */
function recorded<T extends object>(target: T, called: Set<string>): T {
  return new Proxy(target, {
    get(inner, name) {
      const member: unknown = Reflect.get(inner, name, inner);
      if (typeof member !== 'function') return member;
      called.add(String(name));
      return member.bind(inner);
    },
  });
}

t.test('every method of the client library works', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const { server, vendors } = await startWithProviders(t, {
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
    SMTP_MAX_FREQUENCY: '0',
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
  });
  const plain = new AuthClient({
    url: server.url,
    autoRefreshToken: false,
    persistSession: true,
    flowType: 'pkce',
    storageKey: server.url,
  });
  const service = new AuthClient({
    url: server.url,
    autoRefreshToken: false,
    persistSession: false,
    headers: { Authorization: `Bearer ${adminToken()}` },
  });
  const called = { client: new Set<string>(), mfa: new Set<string>(), admin: new Set<string>() };
  const client = recorded(plain, called.client);
  const mfa = recorded(plain.mfa, called.mfa);
  const admin = recorded(service.admin, called.admin);
  const browser = new Browser({ [apiUrl]: server.url });
  const visit = (url: string | null) => browser.visit((url ?? '').replace(server.url, apiUrl), siteUrl);
  /** The data of a result. Throws if it is an error. */
  function data<R extends { readonly data: unknown; readonly error: unknown }>(method: string, result: R) {
    t.equal(result.error, null, method);
    // Without an error there are data.
    return result.data as NonNullable<Extract<R, { readonly error: null }>['data']>;
  }
  const ada = { email: 'ada@example.com', password: 'correct horse' };

  const events: string[] = [];
  client.onAuthStateChange((event) => void events.push(event));
  t.equal((await client.initialize()).error, null);
  const { session } = data('signUp', await client.signUp(ada));
  if (session === null) throw new Error('signed up');
  t.match(data('getUser', await client.getUser()).user, { email: ada.email });
  t.match(data('getClaims', await client.getClaims()), { claims: { email: ada.email } });
  t.match(data('getSession', await client.getSession()), { session: { access_token: session.access_token } });
  data('updateUser', await client.updateUser({ data: { name: 'Ada' } }));
  data('reauthenticate', await client.reauthenticate());
  const refreshed = data('refreshSession', await client.refreshSession()).session ?? session;
  data('setSession', await client.setSession(refreshed));

  vendors.set('github', githubUser('other@example.com'));
  const linking = { provider: 'github', options: { skipBrowserRedirect: true } } as const;
  await visit(data('linkIdentity', await client.linkIdentity(linking)).url);
  const { identities } = data('getUserIdentities', await client.getUserIdentities());
  const github = identities.find(({ provider }) => provider === 'github');
  if (github === undefined) throw new Error('linked above');
  data('unlinkIdentity', await client.unlinkIdentity(github));

  const { id: factorId, totp } = data('enroll', await mfa.enroll({ factorType: 'totp' }));
  const code = () =>
    TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() });
  const challenge = data('challenge', await mfa.challenge({ factorId }));
  data('verify', await mfa.verify({ factorId, challengeId: challenge.id, code: code() }));
  server.clock.advance(60_000);
  data('challengeAndVerify', await mfa.challengeAndVerify({ factorId, code: code() }));
  t.match(data('listFactors', await mfa.listFactors()), { totp: [{ id: factorId }] });
  t.match(data('assurance', await mfa.getAuthenticatorAssuranceLevel()), { currentLevel: 'aal2' });
  data('unenroll', await mfa.unenroll({ factorId }));
  t.equal((await client.signOut()).error, null);

  data('signInWithPassword', await client.signInWithPassword(ada));
  data('signInWithOtp', await client.signInWithOtp({ email: ada.email }));
  data('resetPasswordForEmail', await client.resetPasswordForEmail(ada.email));
  data('resend', await client.resend({ type: 'signup', email: ada.email }));
  const oauth = { provider: 'google', options: { skipBrowserRedirect: true } } as const;
  const landed = await visit(data('signInWithOAuth', await client.signInWithOAuth(oauth)).url);
  const authCode = landed.searchParams.get('code') ?? '';
  data('exchangeCodeForSession', await client.exchangeCodeForSession(authCode));
  const token = await vendors.idToken('google', { ...googleClaims, aud: 'GOOGLE-client' });
  data('signInWithIdToken', await client.signInWithIdToken({ provider: 'google', token }));
  const { wallet } = ethereumAccount();
  const web3 = { chain: 'ethereum', wallet, options: { url: siteUrl } } as const;
  t.match(data('signInWithWeb3', await client.signInWithWeb3(web3)).user, {
    app_metadata: { provider: 'web3' },
  });
  t.match(data('signInAnonymously', await client.signInAnonymously()).user, { is_anonymous: true });
  const sso = await client.signInWithSSO({ domain: 'example.com' });
  t.match(sso.error, { status: 404, code: 'saml_provider_disabled' }, 'signInWithSSO');

  const { user } = data('createUser', await admin.createUser({ email: 'bob@example.com' }));
  const id = user?.id ?? '';
  t.match(data('getUserById', await admin.getUserById(id)), { user: { email: 'bob@example.com' } });
  data('updateUserById', await admin.updateUserById(id, { user_metadata: { name: 'Bob' } }));
  t.ok(data('listUsers', await admin.listUsers()).users.length >= 4);
  data('inviteUserByEmail', await admin.inviteUserByEmail('carol@example.com'));
  const link = data('generateLink', await admin.generateLink({ type: 'magiclink', email: ada.email }));
  const otp = { type: 'email', email: ada.email, token: link.properties?.email_otp ?? '' } as const;
  const verified = data('verifyOtp', await client.verifyOtp(otp));
  t.match(data('admin listFactors', await service.admin.mfa.listFactors({ userId: id })), { factors: [] });
  const unknown = await service.admin.mfa.deleteFactor({ userId: id, id });
  t.match(unknown.error, { code: 'mfa_factor_not_found' }, 'admin deleteFactor');
  t.equal((await admin.signOut(verified.session?.access_token ?? '')).error, null);
  data('deleteUser', await admin.deleteUser(id));

  await client.startAutoRefresh();
  await client.stopAutoRefresh();
  await client.dispose();
  t.ok(events.includes('SIGNED_IN') && events.includes('SIGNED_OUT'), events.join());
  t.same(
    methods(plain).filter((name) => !called.client.has(name)),
    [],
  );
  t.same(
    methods(plain.mfa).filter((name) => !called.mfa.has(name)),
    [],
  );
  t.same(
    methods(service.admin).filter((name) => !called.admin.has(name)),
    [],
  );
});
