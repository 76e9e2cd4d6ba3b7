import { adminScopePrefix } from '@tollgate/admin-clients/admin-scopes';
import { cliClientId, consoleClientId, consoleUris } from '@tollgate/admin-clients/first-party';
import type { AuditActor } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { adminScopes } from '../sessions/admin-scopes.ts';
import { newClient } from './client-input.ts';
import type { OAuthClient } from './client-store.ts';
import { changeAccess, clientAudit, describeUpdate, type OAuthContext } from './clients.ts';
import { deviceGrantType } from './grant.ts';

type FirstPartySettings = Pick<Settings, 'oauthServerConsoleUrl' | 'oauthServerCliEnabled'>;

/** A client without what is the same for all. */
type Definition = Pick<OAuthClient, 'id' | 'client_name' | 'redirect_uris' | 'grant_types' | 'disabled'> & {
  readonly postLogoutUris: readonly string[];
};

/** The clients of the console and the command line, disabled unless the settings have them. */
function defineClients({
  oauthServerConsoleUrl: consoleUrl,
  oauthServerCliEnabled: hasCli,
}: FirstPartySettings): readonly Definition[] {
  const { redirectUri, postLogoutRedirectUri } = consoleUris(consoleUrl);
  const hasConsole = consoleUrl !== '';
  return [
    {
      id: consoleClientId,
      client_name: 'Tollgate console',
      redirect_uris: hasConsole ? [redirectUri] : [],
      postLogoutUris: hasConsole ? [postLogoutRedirectUri] : [],
      grant_types: ['authorization_code', 'refresh_token'],
      disabled: !hasConsole,
    },
    {
      id: cliClientId,
      client_name: 'Tollgate command line',
      redirect_uris: [],
      postLogoutUris: [],
      grant_types: [deviceGrantType, 'refresh_token'],
      disabled: !hasCli,
    },
  ];
}

const adminClientScopes = adminScopes.map((scope) => `${adminScopePrefix}${scope}`);

/** Public clients, which need PKCE, with all admin scopes, and no scopes of the operator's APIs. */
function toClient({ postLogoutUris, ...definition }: Definition) {
  return {
    ...newClient,
    client_type: 'public',
    token_endpoint_auth_method: 'none',
    ...definition,
    scopes: adminClientScopes,
    metadata: {
      scope: ['openid', 'profile', 'email', ...adminClientScopes].join(' '),
      ...(postLogoutUris.length > 0 && { post_logout_redirect_uris: [...postLogoutUris] }),
    },
  } as const;
}

/** The settings make the change, which a start applies. */
const settingsActor: AuditActor = {
  ...{ kind: 'command_line', id: '', email: 'settings', phone: '', userMetadata: {} },
};

/** Other replicas start at the same time. */
const maxAttempts = 5;

/**
 * Brings the first-party clients in the database to what the settings say. They are rows of
 * GoTrue's table, so that all replicas have the same ones, and sessions can refer to them. The row
 * of a client that the settings have not is made only once they had it.
 *
 * @throws AppError `conflict`
 */
export async function applyFirstPartyClients(context: OAuthContext): Promise<void> {
  for (const definition of defineClients(context.settings)) {
    let isApplied = false;
    for (let attempt = 1; attempt <= maxAttempts && !isApplied; attempt++)
      isApplied = await applyClient(context, definition);
    if (!isApplied) throw errors.conflict();
  }
}

/** Returns false if another replica has changed the client at the same time. */
async function applyClient(context: OAuthContext, definition: Definition): Promise<boolean> {
  const { oauthClients } = context.store;
  const { id, disabled } = definition;
  const nowMs = context.nowMs();
  const at = new Date(nowMs);
  const metadata = { nowMs, clientAddress: '', userAgent: '', requestId: '' };
  const request = { actor: settingsActor, metadata };
  const wanted = { ...toClient(definition), client_secret_hash: '', updated_at: at };
  // GoTrue may have deleted it.
  await oauthClients.restore(id);
  const known = await oauthClients.find(id);
  if (known === undefined) {
    if (disabled) return true;
    const client = { ...wanted, created_at: at };
    await oauthClients.insert(client, clientAudit('oauth_client_created', client, request));
    // A row of another replica stays, which may have other settings.
    return false;
  }
  const client = { ...known, ...wanted };
  const traits = describeUpdate({ ...known, updated_at: at }, client);
  if (traits.changed.length === 0) return true;
  const audit = clientAudit('oauth_client_updated', client, request, traits);
  return changeAccess(context, id, { change: (clients) => clients.update(client, audit), ends: disabled });
}
