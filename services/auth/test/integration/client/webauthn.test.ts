// The published client library in Chromium, with authenticators of its DevTools.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChromiumPage, findChromium, startChromium } from '@tollgate/testkit/chromium';
import { build } from 'esbuild';
import t, { type Test } from 'tap';
import { adminToken } from '../../helpers/admin.ts';
import { startAuthServer } from '../../helpers/auth-server.ts';

const chromiumPath = findChromium();
if (chromiumPath instanceof Error && process.env.CI === 'true') throw chromiumPath;
const skip = chromiumPath instanceof Error ? `left out: ${chromiumPath.message}` : false;

/** Starts a site whose page has the client library as `auth`, on a port of `localhost`. */
async function startSite(t: Test): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: `export * from '@supabase/auth-js'`, resolveDir: import.meta.dirname },
    bundle: true,
    format: 'iife',
    globalName: 'auth',
    write: false,
    logLevel: 'error',
  });
  const page = `<!doctype html><title>app</title><script>${outputFiles[0]?.text}</script>`;
  const site = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page),
  );
  await once(site.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => site.close());
  // A TCP server's address is never a string.
  return `localhost:${(site.address() as AddressInfo).port}`;
}

async function addAuthenticator(page: ChromiumPage, isUserVerified: boolean): Promise<string> {
  const { authenticatorId } = await page.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'usb',
      hasResidentKey: true,
      hasUserVerification: isUserVerified,
      isUserVerified,
      automaticPresenceSimulation: true,
    },
  });
  return String(authenticatorId);
}

t.test('client library in a browser', { skip }, async (t) => {
  const host = await startSite(t);
  const server = await startAuthServer(t, {
    PASSKEY_ENABLED: 'true',
    MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
    MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
    WEBAUTHN_RP_ID: 'localhost',
    WEBAUTHN_RP_DISPLAY_NAME: 'Notes',
    WEBAUTHN_RP_ORIGINS: `http://${host}`,
  });
  const chromium = await startChromium(String(chromiumPath), {
    [host]: host.replace('localhost', '127.0.0.1'),
  });
  t.teardown(() => chromium.stop());
  const page = await chromium.newPage();
  await page.open(`http://${host}/`);
  await page.send('WebAuthn.enable');
  const authenticatorId = await addAuthenticator(page, true);
  const options = JSON.stringify({ url: server.url, autoRefreshToken: false });
  await page.evaluate(`globalThis.client = new auth.AuthClient(${options}); undefined`);
  /** Calls the client, and returns `data` or throws `error`. */
  const call = (expression: string) =>
    page.evaluate(`client.${expression}.then(({ data, error }) => {
      if (error) throw new Error(error.name + ' ' + error.code + ' ' + error.message + ' ' + error.cause);
      return data;
    })`);
  const ada = `{ email: 'ada@example.com', password: 'correct horse' }`;

  await t.test('user registers a passkey, renames it, and signs in with it', async (t) => {
    const { user } = (await call(`signUp(${ada})`)) as { user: { id: string } };
    const passkey = (await call('registerPasskey()')) as { id: string; friendly_name: string };
    t.match(passkey, { id: /^[0-9a-f-]{36}$/, friendly_name: 'Passkey', created_at: /^\d{4}-/ });
    await t.rejects(call('registerPasskey()'), /ERROR_AUTHENTICATOR_PREVIOUSLY_REGISTERED/);
    const renamed = `passkey.update({ passkeyId: '${passkey.id}', friendlyName: 'laptop' })`;
    t.match(await call(renamed), { id: passkey.id, friendly_name: 'laptop' });

    await page.evaluate(`client.signOut().then(() => undefined)`);
    t.match(await call('signInWithPasskey()'), { user: { id: user.id }, session: { token_type: 'bearer' } });
    t.match(await call('mfa.getAuthenticatorAssuranceLevel()'), {
      currentLevel: 'aal1',
      currentAuthenticationMethods: [{ method: 'passkey' }],
    });
    t.match(await call('passkey.list()'), [{ friendly_name: 'laptop', last_used_at: /^\d{4}-/ }]);
    await call(`passkey.delete({ passkeyId: '${passkey.id}' })`);
    t.same(await call('passkey.list()'), []);
    await t.rejects(call('signInWithPasskey()'), /webauthn_verification_failed/);
  });

  await t.test('administrator lists and removes passkeys', async (t) => {
    await page.send('WebAuthn.clearCredentials', { authenticatorId });
    const { id } = (await call('registerPasskey()')) as { id: string };
    const headers = JSON.stringify({ headers: { authorization: `Bearer ${adminToken()}` } });
    await page.evaluate(
      `client.admin = new auth.AuthAdminApi({ url: '${server.url}', ...${headers} }); undefined`,
    );
    const userId = `(await client.getUser()).data.user.id`;
    const admin = (expression: string) =>
      page.evaluate(`(async () => { const userId = ${userId};
      const { data, error } = await client.admin.passkey.${expression}; if (error) throw error; return data; })()`);
    t.match(await admin('listPasskeys({ userId })'), [{ id }]);
    await admin(`deletePasskey({ userId, passkeyId: '${id}' })`);
    t.same(await admin('listPasskeys({ userId })'), []);
  });

  await t.test('security key without user verification is a second factor', async (t) => {
    await page.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
    await addAuthenticator(page, false);
    await call(`signInWithPassword(${ada})`);
    const registered = await call(`mfa.webauthn.register({ friendlyName: 'key' })`);
    t.match(registered, {
      user: { factors: [{ factor_type: 'webauthn', friendly_name: 'key', status: 'verified' }] },
    });
    t.match(await call('mfa.getAuthenticatorAssuranceLevel()'), { currentLevel: 'aal2' });

    await call(`signInWithPassword(${ada})`);
    t.match(await call('mfa.getAuthenticatorAssuranceLevel()'), { currentLevel: 'aal1', nextLevel: 'aal2' });
    await t.rejects(call('registerPasskey()'), /insufficient_aal/);
    const { webauthn } = (await call('mfa.listFactors()')) as { webauthn: readonly { id: string }[] };
    await call(`mfa.webauthn.authenticate({ factorId: '${webauthn[0]?.id}' })`);
    t.match(await call('mfa.getAuthenticatorAssuranceLevel()'), {
      currentLevel: 'aal2',
      currentAuthenticationMethods: [{ method: 'mfa/webauthn' }, { method: 'password' }],
    });
    await call(`mfa.unenroll({ factorId: '${webauthn[0]?.id}' })`);
  });
});
