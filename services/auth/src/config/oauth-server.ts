import { bool } from '@tollgate/kit/settings';
import { hostList, lifetime, svc } from './builders.ts';

const group = 'OAuth server';

export const oauthServerSettings = {
  oauthServerEnabled: bool({
    ...svc('OAUTH_SERVER_ENABLED'),
    group,
    default: false,
    doc: 'Clients get tokens at `/oauth/token` with `client_credentials`, and administrators manage clients with `/admin/oauth/clients`. `false`: these routes respond with 404 `feature_disabled`. Other grants are not supported yet.',
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
    doc: 'Hosts of a `jwks_uri` of clients that may have a private address, and be reached without TLS. Other ones must have public addresses.',
  }),
};
