import { bool, type Setting, type SettingsCheck, text } from '@tollgate/kit/settings';
import { hostList, lifetime, svc, textOrDefault } from './builders.ts';
import { permissionList } from './oauth-permissions.ts';

const group = 'OAuth server';

export const oauthServerSettings = {
  oauthServerEnabled: bool({
    ...svc('OAUTH_SERVER_ENABLED'),
    group,
    default: false,
    doc: 'Applications of others sign users in with OAuth 2.1 and OpenID Connect, services get tokens with `client_credentials`, and administrators manage clients with `/admin/oauth/clients`. `false`: these routes respond with 404 `feature_disabled`.',
  }),
  oauthServerAllowDynamicRegistration: bool({
    ...svc('OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION'),
    group,
    default: false,
    doc: 'Anyone may register a client at `/oauth/clients/register`, such as MCP clients do. Users still decide what it may do.',
  }),
  oauthServerAllowDocuments: bool({
    ...svc('OAUTH_SERVER_ALLOW_CLIENT_ID_METADATA_DOCUMENTS'),
    group,
    default: false,
    doc: 'Clients need no registration: their `client_id` is the https URL of a document with their metadata, which the server fetches. MCP clients do this. Users still decide what they may do.',
  }),
  oauthServerDocumentHosts: hostList({
    ...svc('OAUTH_SERVER_CLIENT_ID_METADATA_HOSTS'),
    group,
    default: [],
    doc: 'Hosts of client ID metadata documents. Unset: any host. Clients of other hosts get no tokens, also if they are known.',
  }),
  oauthServerConsoleUrl: text({
    ...svc('OAUTH_SERVER_CONSOLE_URL'),
    group,
    default: '',
    doc: 'External URL of the web console, such as `https://console.example.com`. The built-in client of the console returns there after a sign-in, and may have all admin scopes. Unset: there is no such client.',
  }),
  oauthServerCliEnabled: bool({
    ...svc('OAUTH_SERVER_CLI_ENABLED'),
    group,
    default: false,
    doc: 'Administrators sign in with `tollgate login`: there is a built-in client of the command line, which may have all admin scopes. It has no redirect URI and no secret, so anyone can send an administrator a code to enter.',
  }),
  oauthServerAuthorizationPath: text({
    ...svc('OAUTH_SERVER_AUTHORIZATION_PATH'),
    group,
    default: '',
    doc: 'The page of the application, relative to `SITE_URL`, that asks users whether a client may have access. It gets `authorization_id`. Unset: the hosted page (`SVC_PAGES_ENABLED`).',
  }),
  oauthServerAuthorizationTtlMs: lifetime({
    ...svc('OAUTH_SERVER_AUTHORIZATION_TTL'),
    group,
    default: '10m',
    min: '1s',
    doc: 'How long a user may take to sign in and decide. A code is valid for 5 minutes after the decision.',
  }),
  oauthServerRequirePkce: bool({
    ...svc('OAUTH_SERVER_REQUIRE_PKCE'),
    group,
    default: true,
    doc: 'Every authorization request needs PKCE. `false`: those of confidential clients may go without it, such as older OpenID Connect clients do; public clients never may.',
  }),
  oauthServerRequirePushedRequests: bool({
    ...svc('OAUTH_SERVER_REQUIRE_PUSHED_AUTHORIZATION_REQUESTS'),
    group,
    default: false,
    doc: 'All clients have to send authorization requests to `/oauth/par` first. `false`: those with `require_pushed_authorization_requests` only.',
  }),
  oauthServerRequireDpopNonce: bool({
    ...svc('OAUTH_SERVER_REQUIRE_DPOP_NONCE'),
    group,
    default: false,
    doc: 'DPoP proofs must have a nonce of the server, also at the gateway, so that they cannot be made in advance. Clients get it with an error, and repeat the request.',
  }),
  oauthServerDefaultScope: textOrDefault({
    ...svc('OAUTH_SERVER_DEFAULT_SCOPE'),
    group,
    default: 'email',
    doc: 'Scopes of requests without `scope`, separated by spaces.',
  }),
  oauthServerScopes: permissionList({
    ...svc('OAUTH_SERVER_SCOPES'),
    group,
    default: '',
    doc: 'Scopes of your API that clients ask users for: names separated by commas, or a JSON object with a `description` in each language, which the hosted page shows, and `clients`: `all`, or `assigned` (the default): those whose `scopes` an administrator has set.',
  }),
  oauthServerDetailsTypes: permissionList({
    ...svc('OAUTH_SERVER_AUTHORIZATION_DETAILS_TYPES'),
    group,
    default: '',
    doc: 'Types of `authorization_details` of your API, in the form of `SVC_OAUTH_SERVER_SCOPES`; `assigned` ones are for clients with `authorization_details_types` that an administrator has set. The hook `authorization-details` checks them, and has to be enabled. Unset: requests with `authorization_details` are refused.',
  }),
  oauthServerClientTokenTtlMs: lifetime({
    ...svc('OAUTH_SERVER_CLIENT_TOKEN_TTL'),
    group,
    default: '15m',
    min: '1s',
    doc: 'Lifetime of the token that a client gets for itself. A client that is deleted or disabled loses it at once at the gateway.',
  }),
  oauthServerPrivateHosts: hostList({
    ...svc('OAUTH_SERVER_PRIVATE_HOSTS'),
    group,
    default: [],
    doc: 'Hosts of a `jwks_uri` or metadata document of clients that may have a private address, and be reached without TLS. Other ones must have public addresses.',
  }),
};

type Check = SettingsCheck<
  typeof oauthServerSettings & {
    readonly pagesEnabled: Setting<boolean>;
    readonly 'hookEnabled:AUTHORIZATION_DETAILS': Setting<boolean>;
  }
>;

/** A redirect URI is compared to the letter, and a code must not be sent without TLS. */
const consoleUrl: Check = (s, { problem }) =>
  s.oauthServerConsoleUrl === '' || isPageUrl(s.oauthServerConsoleUrl)
    ? undefined
    : problem(
        'oauthServerConsoleUrl',
        'a URL with https, or with http for a loopback host, without user, query and fragment',
      );

const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

function isPageUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\/[!-~]{1,1024}$/i.test(text) || /[,?#@]/.test(text)) return false;
  return url.protocol === 'https:' || loopbackHosts.includes(url.hostname);
}

const clientsNeedServer: Check = (s, { problem, variableName }) => {
  const needed = (['oauthServerConsoleUrl', 'oauthServerCliEnabled'] as const).find((name) => s[name]);
  return needed !== undefined && !s.oauthServerEnabled
    ? problem('oauthServerEnabled', `true, because ${variableName(needed)} is set`)
    : undefined;
};

/** Codes of devices are entered on a hosted page. */
const cliNeedsPages: Check = (s, { problem, variableName }) =>
  s.oauthServerCliEnabled && !s.pagesEnabled
    ? problem('pagesEnabled', `true, because ${variableName('oauthServerCliEnabled')} is true`)
    : undefined;

/** Only the hook knows what the members of a type mean. */
const detailsNeedHook: Check = (s, { problem, variableName }) => {
  if (s.oauthServerDetailsTypes.length === 0) return undefined;
  const missing = (['oauthServerEnabled', 'hookEnabled:AUTHORIZATION_DETAILS'] as const).find(
    (name) => !s[name],
  );
  return missing && problem(missing, `true, because ${variableName('oauthServerDetailsTypes')} is set`);
};

export const oauthServerChecks: readonly Check[] = [
  ...[consoleUrl, clientsNeedServer, cliNeedsPages, detailsNeedHook],
];
