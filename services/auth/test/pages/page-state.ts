import { type Smtp, startSmtp } from '@tollgate/testkit/smtp';
import type { Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn } from '../helpers/auth-server.ts';
import { Authenticator } from '../helpers/authenticator.ts';
import { Browser } from '../helpers/browser.ts';
import { addProvider } from '../helpers/custom-providers.ts';
import { linkIn } from '../helpers/mail-server.ts';
import {
  authorize,
  createApplication,
  createMachine,
  oauthServer,
  openAuthorize,
  redeem,
} from '../helpers/oauth-clients.ts';
import { createOrganization, withOrganizations } from '../helpers/organizations.ts';
import { apiUrl, startWithProviders } from '../helpers/provider-sign-in.ts';
import { textMessages } from '../helpers/text-messages.ts';
import { enrollTotp } from '../helpers/totp.ts';

export const appName = 'Notes & more';
const ada = { email: 'ada@pages.example', password: 'correct horse' };
export const bob = { email: 'bob@pages.example', password: 'battery staple' };

/** An address of Chromium's own, which leads to the test server. */
export const applicationUrl = 'http://localhost:9998/health';

/** Everything that pages show: users, an organization, and requests that wait for a decision. */
export interface PageState {
  readonly server: AuthServer;
  /** Ada with her second factor, and before it. */
  readonly user: SignedIn;
  readonly halfway: SignedIn;
  readonly clientId: string;
  /** Path and query of pages. */
  readonly consent: string;
  readonly deviceConsent: string;
  readonly linking: string;
  readonly organization: string;
  /** Id of Ada's passkey. */
  readonly passkey: string;
  /** Token of Ada's invitation to an organization of Bob. */
  readonly invitation: string;
}

/** Starts a server with all pages. */
export async function startPages(t: Test): Promise<PageState> {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const sms = await textMessages(t);
  const { server } = await startWithProviders(t, {
    ...oauthServer,
    ...withOrganizations,
    ...sms.variables,
    PAGES_ENABLED: 'true',
    PAGES_NAME: appName,
    PAGES_COLOR: '#a21caf',
    PASSKEY_ENABLED: 'true',
    WEBAUTHN_RP_ID: 'localhost',
    WEBAUTHN_RP_DISPLAY_NAME: appName,
    WEBAUTHN_RP_ORIGINS: apiUrl,
    API_KEYS_ENABLED: 'true',
    API_KEYS_SELF_SERVICE: 'true',
    MFA_PHONE_ENROLL_ENABLED: 'true',
    MFA_PHONE_VERIFY_ENABLED: 'true',
    MFA_RECOVERY_CODES_ENROLL_ENABLED: 'true',
    MFA_RECOVERY_CODES_VERIFY_ENABLED: 'true',
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
    MAILER_AUTOCONFIRM: 'false',
    MAILER_LINK_PAGE_ENABLED: 'true',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
  });
  for (const user of [ada, bob]) {
    const body = { ...user, email_confirm: true };
    await server.call('POST', '/admin/users', { token: adminToken(), body });
  }
  await addProvider(server, { identifier: 'custom:forum', name: 'Forum of our users and developers' });
  const user = await enrollTotp(server, await signIn(server, ada));
  const { client_id: clientId } = await createApplication(server, {
    redirect_uris: [applicationUrl],
    token_endpoint_auth_method: 'none',
  });
  const { accessToken: token } = user;
  await server.call('POST', '/user/api-keys', { token, body: { name: 'Reports' } });
  await connectApplication(server, user);
  await server.call('PUT', '/user', { token, body: { phone: '+4915112345678' } });
  return {
    server,
    user,
    halfway: await signIn(server, ada),
    clientId,
    consent: await askForConsent(server, clientId),
    deviceConsent: await connectDevice(server),
    linking: await startLinking(server, user),
    organization: await createOrganization(server, user),
    passkey: await addPasskey(server, user),
    invitation: await inviteAda(server, smtp),
  };
}

async function signIn(server: AuthServer, body: typeof ada): Promise<SignedIn> {
  return signedIn(await server.call('POST', '/token?grant_type=password', { body }));
}

/** Where `/oauth/authorize` sends the browser. */
export async function askForConsent(server: AuthServer, clientId: string): Promise<string> {
  const scope = 'openid email profile phone offline_access';
  const asked = await openAuthorize(server, { client_id: clientId, redirect_uri: applicationUrl, scope });
  return toPath(asked.headers.get('location'));
}

async function connectDevice(server: AuthServer): Promise<string> {
  const { client_id: id } = await createMachine(server, {
    client_name: 'Television',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
    token_endpoint_auth_method: 'none',
  });
  const { body } = await server.call('POST', '/oauth/device_authorization', { body: { client_id: id } });
  const browser = new Browser({ [apiUrl]: server.url });
  const url = `${apiUrl}/pages/device`;
  const entered = await browser.submit(url, { user_code: String(body.user_code) }, { target: 'device' });
  return toPath(entered.headers.get('location'));
}

async function addPasskey(server: AuthServer, { accessToken: token }: SignedIn): Promise<string> {
  const started = await server.call('POST', '/passkeys/registration/options', { token });
  // Parsed boundary: a server of ours.
  const { challenge_id, options } = started.body as { challenge_id: string; options: { challenge: string } };
  const credential = new Authenticator().create(options, { origin: apiUrl, rpId: 'localhost' });
  const body = { challenge_id, credential };
  const added = await server.call('POST', '/passkeys/registration/verify', { token, body });
  return String(added.body.id);
}

/** An application that has access to the account. */
async function connectApplication(server: AuthServer, { accessToken: token }: SignedIn): Promise<void> {
  const client = await createApplication(server);
  const [resource, scope] = ['https://mcp.example.com/notes', 'openid email profile'];
  const code = await authorize(server, token, { client_id: client.client_id, scope, resource });
  await redeem(server, client, code, { resource });
}

/** An app asks to link an identity, whose page another browser opens. */
async function startLinking(server: AuthServer, { accessToken: token }: SignedIn): Promise<string> {
  const path = '/user/identities/authorize?provider=github&skip_http_redirect=true';
  const { body } = await server.call('GET', path, { token });
  return toPath(body.url);
}

async function inviteAda(server: AuthServer, smtp: Smtp): Promise<string> {
  const owner = await signIn(server, bob);
  const id = await createOrganization(server, owner, { name: 'Bob & Sons' });
  const body = { email: ada.email, role: 'admin' };
  await server.call('POST', `/organizations/${id}/invitations`, { token: owner.accessToken, body });
  return linkIn(await smtp.mailTo(ada.email)).searchParams.get('invitation_token') ?? '';
}

function toPath(url: unknown): string {
  const { pathname, search } = new URL(String(url), apiUrl);
  return `${pathname}${search}`;
}
