export interface paths {
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Name and version of the server */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Readiness: 200, or 503 if the database is unavailable or read-only. `missing_indexes` names indexes that are being made */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Enabled features */
        get: operations["getSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Public keys of access tokens (RFC 7517) */
        get: operations["getKeySet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/openid-configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Issuer of access tokens and where its keys are (OpenID Connect Discovery) */
        get: operations["getOpenIdConfiguration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/oauth-authorization-server": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metadata of the OAuth server (RFC 8414) */
        get: operations["getOAuthMetadata"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["getOpenApiDocument"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the passkeys of a user */
        get: operations["adminListPasskeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}/passkeys/{passkey_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a passkey */
        delete: operations["adminRemovePasskey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List users, by page (`X-Total-Count`, `Link`) or by cursor (`pagination`, `Link`). Cursors are for large lists: their cost does not depend on the position */
        get: operations["adminListUsers"];
        put?: never;
        /** Create a user */
        post: operations["adminCreateUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a user */
        get: operations["adminGetUser"];
        /** Change a user; `ban_duration` bans */
        put: operations["adminUpdateUser"];
        /** Create a user with this id */
        post: operations["adminCreateUserWithId"];
        /** Delete a user */
        delete: operations["adminDeleteUser"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/invite": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Invite a user by email */
        post: operations["adminInviteUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/generate_link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Generate a link without sending it */
        post: operations["adminGenerateLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/redirect-check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Explain which rule allows a `redirect_to`, or why none does */
        get: operations["adminExplainRedirect"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the audit log, newest first */
        get: operations["adminListAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List API keys, newest first */
        get: operations["adminListApiKeys"];
        put?: never;
        /** Create an API key of a user, an organisation or a machine */
        post: operations["adminCreateApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/api-keys/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check an API key, as ext_authz does */
        post: operations["adminVerifyApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/api-keys/{key_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an API key */
        get: operations["adminGetApiKey"];
        /** Change an API key. An empty text, list or object removes the value */
        put: operations["adminUpdateApiKey"];
        post?: never;
        /** Revoke an API key */
        delete: operations["adminRevokeApiKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/api-keys/{key_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replace an API key. The old one is valid for `grace` */
        post: operations["adminRotateApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/credentials/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check an API key or access token of an administrator, which another service has received */
        post: operations["adminVerifyCredential"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/policies/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Explain how a check would be decided, without counting it */
        post: operations["adminExplainCheck"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/issuers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List other token issuers that the gateway accepts, with the state of their keys */
        get: operations["adminListIssuers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All settings in force, without secrets, and the warnings of the start, of this replica */
        get: operations["adminGetSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/signing-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The signing keys of this replica, without the keys themselves, and the next step of a rotation */
        get: operations["adminListSigningKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/events/failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List events whose delivery was given up, newest first */
        get: operations["adminListFailedEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/events/{event_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deliver a failed event again */
        post: operations["adminRedeliverEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the endpoints of events */
        get: operations["adminListWebhooks"];
        put?: never;
        /** Add an endpoint of events. Returns its secret, once */
        post: operations["adminCreateWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an endpoint */
        get: operations["adminGetWebhook"];
        /** Change an endpoint: name, URL, types of events, or whether it is disabled */
        put: operations["adminUpdateWebhook"];
        post?: never;
        /** Remove an endpoint and the events that wait for it */
        delete: operations["adminDeleteWebhook"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/webhooks/{webhook_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a new secret; the old one signs, too, for `grace` (24h by default). Returns it, once */
        post: operations["adminRotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Post an event `webhook.test` to an endpoint at once */
        post: operations["adminTestWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}/factors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the second factors of a user */
        get: operations["adminListFactors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}/factors/{factor_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Change a factor */
        put: operations["adminUpdateFactor"];
        post?: never;
        /** Remove a factor */
        delete: operations["adminRemoveFactor"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}/recovery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a user a link to set a new password */
        post: operations["adminSendRecovery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the sessions of a user */
        get: operations["adminListSessions"];
        put?: never;
        post?: never;
        /** End all sessions of a user */
        delete: operations["adminEndSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/{user_id}/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a session of a user */
        delete: operations["adminEndSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/organizations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List organizations, newest first, by cursor (`pagination`, `Link`) */
        get: operations["adminListOrganizations"];
        put?: never;
        /** Create an organization */
        post: operations["adminCreateOrganization"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/organizations/{organization_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an organization */
        get: operations["adminGetOrganization"];
        /** Change an organization. An empty text or object removes the value */
        put: operations["adminUpdateOrganization"];
        post?: never;
        /** Delete an organization */
        delete: operations["adminDeleteOrganization"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/organizations/{organization_id}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the members of an organization: all, or by cursor with `limit` or `cursor` */
        get: operations["adminListMembers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/organizations/{organization_id}/members/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Add a user to an organization, or change their role */
        put: operations["adminSetMember"];
        post?: never;
        /** Remove a member from an organization */
        delete: operations["adminRemoveMember"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/organizations/{organization_id}/domains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the email domains of an organization */
        get: operations["adminListDomains"];
        put?: never;
        /** Claim an email domain for an organization. The response has the DNS record that proves it */
        post: operations["adminClaimDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/organizations/{organization_id}/domains/{domain}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Verify a claimed email domain by its DNS record */
        post: operations["adminVerifyDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/organizations/{organization_id}/domains/{domain}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Give an email domain to an organization, without a record. With `domain_role`, its users may join */
        put: operations["adminSetDomain"];
        post?: never;
        /** Take an email domain from an organization */
        delete: operations["adminRemoveDomain"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/custom-providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List custom identity providers */
        get: operations["adminListProviders"];
        put?: never;
        /** Add an identity provider, by OpenID Connect discovery or OAuth 2.0 */
        post: operations["adminCreateProvider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/custom-providers/{identifier}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a custom identity provider */
        get: operations["adminGetProvider"];
        /** Change a custom identity provider */
        put: operations["adminUpdateProvider"];
        post?: never;
        /** Delete a custom identity provider */
        delete: operations["adminDeleteProvider"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/custom-providers/{identifier}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check a custom identity provider, with its discovery document now. Changes nothing */
        post: operations["adminCheckProvider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/oauth/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List OAuth clients, newest first */
        get: operations["adminListOAuthClients"];
        put?: never;
        /** Create an OAuth client. The secret is shown once */
        post: operations["adminCreateOAuthClient"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/oauth/clients/{client_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an OAuth client */
        get: operations["adminGetOAuthClient"];
        /** Change the given members of an OAuth client. Empty values remove optional members */
        put: operations["adminUpdateOAuthClient"];
        post?: never;
        /** Delete an OAuth client, and end its tokens */
        delete: operations["adminDeleteOAuthClient"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/oauth/clients/{client_id}/regenerate_secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replace the secret of an OAuth client, and end its tokens */
        post: operations["adminRegenerateOAuthClientSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get tokens as an OAuth client: `authorization_code` (RFC 6749 §4.1.3), `refresh_token` (§6), `client_credentials` (§4.4) */
        post: operations["createOAuthToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/device_authorization": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start the request of a device, for which a user enters a code (RFC 8628) */
        post: operations["authorizeDevice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/par": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Push the parameters of an authorization request (RFC 9126) */
        post: operations["pushAuthorizationRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End the session of a token of the client (RFC 7009) */
        post: operations["revokeOAuthToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/introspect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Whether a token is valid, for its client or its resource (RFC 7662) */
        post: operations["introspectToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/clients/register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Register an OAuth client, if allowed (RFC 7591) */
        post: operations["registerOAuthClient"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/authorize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Ask a user for access (RFC 6749 §4.1.1): redirects to the page of the application */
        get: operations["authorizeOAuthClient"];
        put?: never;
        /** Ask a user for access by a form (OpenID Connect Core §3.1.2.1) */
        post: operations["authorizeOAuthClientByForm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sign a user out for a client (OpenID Connect RP-Initiated Logout): redirects to the hosted page */
        get: operations["endOAuthSession"];
        put?: never;
        /** Sign a user out for a client by a form */
        post: operations["endOAuthSessionByForm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/authorizations/{authorization_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a request for access, and bind it to the user. With an earlier consent: where to redirect to */
        get: operations["getOAuthAuthorization"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/authorizations/{authorization_id}/consent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `approve` or `deny` a request for access. Returns where to redirect to */
        post: operations["decideOAuthAuthorization"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/oauth/grants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List OAuth clients that the user has given access */
        get: operations["listOAuthGrants"];
        put?: never;
        post?: never;
        /** Revoke the access of an OAuth client, and end its sessions */
        delete: operations["revokeOAuthGrant"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/userinfo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Claims of the user by the scopes of the token (OpenID Connect Core §5.3) */
        get: operations["getUserInfo"];
        put?: never;
        /** Claims of the user, asked for by POST (OpenID Connect Core §5.3.1) */
        post: operations["getUserInfoByForm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/users/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Import users: one JSON object per line, at most 10,000. Users that are present are skipped. Returns counts, and `errors` with line numbers */
        post: operations["adminImportUsers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/api-keys/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Import SHA-256 digests of API keys from NDJSON, at most 10,000. Digests that are present are skipped */
        post: operations["adminImportApiKeys"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Empty: Record<string, never>;
        Document: {
            [key: string]: unknown;
        };
        Health: {
            version: string;
            name: string;
            description: string;
        };
        Readiness: {
            status: string;
            missing_indexes?: string[];
        };
        /** @description RFC 7517 §5. */
        KeySet: {
            keys: {
                [key: string]: unknown;
            }[];
        };
        OpenIdConfiguration: {
            issuer: string;
            jwks_uri: string;
            response_types_supported: string[];
            subject_types_supported: string[];
            id_token_signing_alg_values_supported: string[];
            authorization_endpoint?: string;
            token_endpoint?: string;
            userinfo_endpoint?: string;
            end_session_endpoint?: string;
            revocation_endpoint?: string;
            introspection_endpoint?: string;
            revocation_endpoint_auth_methods_supported?: string[];
            revocation_endpoint_auth_signing_alg_values_supported?: string[];
            introspection_endpoint_auth_methods_supported?: string[];
            introspection_endpoint_auth_signing_alg_values_supported?: string[];
            registration_endpoint?: string;
            scopes_supported?: string[];
            authorization_details_types_supported?: string[];
            claims_supported?: string[];
            response_modes_supported?: string[];
            claims_parameter_supported?: boolean;
            request_parameter_supported?: boolean;
            request_uri_parameter_supported?: boolean;
            acr_values_supported?: string[];
            backchannel_logout_supported?: boolean;
            backchannel_logout_session_supported?: boolean;
            prompt_values_supported?: string[];
            ui_locales_supported?: string[];
            code_challenge_methods_supported?: string[];
            authorization_response_iss_parameter_supported?: boolean;
            client_id_metadata_document_supported?: boolean;
            introspection_signing_alg_values_supported?: string[];
            device_authorization_endpoint?: string;
            pushed_authorization_request_endpoint?: string;
            require_pushed_authorization_requests?: boolean;
            dpop_signing_alg_values_supported?: string[];
            grant_types_supported?: string[];
            token_endpoint_auth_methods_supported?: string[];
            token_endpoint_auth_signing_alg_values_supported?: string[];
        };
        ClientToken: {
            access_token: string;
            issued_token_type?: string;
            /** @enum {unknown} */
            token_type: "Bearer" | "DPoP";
            expires_in: number;
            refresh_token?: string;
            /** @description With the scope `openid`. */
            id_token?: string;
            scope?: string;
            authorization_details?: {
                [key: string]: unknown;
            }[];
        };
        PushedRequest: {
            request_uri: string;
            expires_in: number;
        };
        DeviceAuthorization: {
            device_code: string;
            user_code: string;
            verification_uri: string;
            verification_uri_complete: string;
            expires_in: number;
            interval: number;
        };
        Introspection: {
            active: boolean;
            token_type?: string;
            scope?: string;
            authorization_details?: {
                [key: string]: unknown;
            }[];
            client_id?: string;
            /** Format: uuid */
            sub?: string;
            aud?: string | string[];
            iss?: string;
            /** @description Unix time in seconds. */
            exp?: number;
            /** @description Unix time in seconds. */
            iat?: number;
            /** Format: uuid */
            jti?: string;
            cnf?: {
                jkt: string;
            };
        };
        OAuthAuthorization: {
            authorization_id: string;
            redirect_uri: string;
            client: {
                /** Format: uuid */
                id: string;
                name: string;
                uri: string;
                logo_uri: string;
            };
            user: {
                /** Format: uuid */
                id: string;
                email: string;
            };
            scope: string;
            authorization_details?: {
                [key: string]: unknown;
            }[];
        };
        OAuthRedirect: {
            redirect_url: string;
        };
        OAuthGrant: {
            client: {
                /** Format: uuid */
                id: string;
                name: string;
                uri: string;
                logo_uri: string;
            };
            scopes: string[];
            /** Format: date-time */
            granted_at: string;
        };
        UserInfo: {
            /** Format: uuid */
            sub: string;
            email?: string;
            email_verified?: boolean;
            phone?: string;
            phone_verified?: boolean;
            phone_number?: string;
            phone_number_verified?: boolean;
            name?: string;
            picture?: string;
            preferred_username?: string;
            /** @description Unix time in seconds. */
            updated_at?: number;
            user_metadata?: {
                [key: string]: unknown;
            };
        };
        SentMessage: {
            /** @description Of a text message, as its gateway returned it. */
            message_id?: string;
        };
        /** @description The link to the other address must be followed, too. */
        AcceptedLink: {
            msg: string;
            code: string;
        };
        SessionList: {
            sessions: {
                /** Format: uuid */
                id: string;
                /** @description Whether it is the session of the request. */
                current: boolean;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                refreshed_at?: string;
                /**
                 * Format: date-time
                 * @description Last request of a browser to an application behind the gateway, to a minute.
                 */
                used_at?: string;
                /**
                 * Format: date-time
                 * @description When the access token of the last refresh expires, unless the session ends before.
                 */
                token_expires_at: string;
                /** Format: date-time */
                not_after?: string;
                aal: string;
                amr: {
                    method: string;
                    /** @description Unix time in seconds. */
                    timestamp: number;
                }[];
                user_agent: string;
                ip: string;
                tag?: string;
                /**
                 * Format: uuid
                 * @description The OAuth client that has the session.
                 */
                client_id?: string;
                scope?: string;
            }[];
        };
        ProviderUrl: {
            url: string;
        };
        EnrolledFactor: {
            /** Format: uuid */
            id: string;
            type: string;
            friendly_name?: string;
            totp?: {
                qr_code: string;
                secret: string;
                uri: string;
            };
            phone?: string;
        };
        Challenge: {
            /** Format: uuid */
            id: string;
            type: string;
            /** @description Unix time in seconds. */
            expires_at: number;
            webauthn?: {
                /** @enum {unknown} */
                type: "create" | "request";
                credential_options: {
                    [key: string]: unknown;
                };
            };
        };
        RemovedFactor: {
            /** Format: uuid */
            id: string;
        };
        RecoveryCodes: {
            /** Format: uuid */
            id: string;
            type: string;
            friendly_name?: string;
            total: number;
            remaining?: number;
            /** @description Shown once. */
            codes?: string[];
        };
        PasskeyChallenge: {
            /** Format: uuid */
            challenge_id: string;
            options: {
                [key: string]: unknown;
            };
            /** @description Unix time in seconds. */
            expires_at: number;
        };
        AuditEntry: {
            /** Format: uuid */
            id: string;
            payload: {
                [key: string]: unknown;
            };
            /** Format: date-time */
            created_at: string;
            ip_address: string;
        };
        Event: {
            id: string;
            type: string;
            /**
             * Format: uuid
             * @description Absent for the endpoint of the settings.
             */
            webhook_id?: string;
            /**
             * Format: uuid
             * @description Absent for events without a user.
             */
            user_id?: string;
            data: {
                [key: string]: unknown;
            };
            /** Format: date-time */
            created_at: string;
            attempts: number;
            /** Format: date-time */
            failed_at?: string;
            last_error: string;
        };
        EventList: {
            events: {
                id: string;
                type: string;
                /**
                 * Format: uuid
                 * @description Absent for the endpoint of the settings.
                 */
                webhook_id?: string;
                /**
                 * Format: uuid
                 * @description Absent for events without a user.
                 */
                user_id?: string;
                data: {
                    [key: string]: unknown;
                };
                /** Format: date-time */
                created_at: string;
                attempts: number;
                /** Format: date-time */
                failed_at?: string;
                last_error: string;
            }[];
        };
        Webhook: {
            /** Format: uuid */
            id: string;
            name: string;
            url: string;
            /** @description Empty: all. */
            event_types: string[];
            disabled: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            last_delivered_at?: string;
            /** Format: date-time */
            last_failed_at?: string;
            last_error: string;
            /** Format: date-time */
            previous_secret_until?: string;
            /** @description Shown once, after it was made. */
            secret?: string;
        };
        WebhookList: {
            webhooks: {
                /** Format: uuid */
                id: string;
                name: string;
                url: string;
                /** @description Empty: all. */
                event_types: string[];
                disabled: boolean;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
                /** Format: date-time */
                last_delivered_at?: string;
                /** Format: date-time */
                last_failed_at?: string;
                last_error: string;
                /** Format: date-time */
                previous_secret_until?: string;
                /** @description Shown once, after it was made. */
                secret?: string;
            }[];
        };
        WebhookTest: {
            delivered: boolean;
            error?: string;
        };
        ServiceSettings: {
            /** @example xds */
            service: string;
            /** @example 0.1.0 */
            version: string;
            /**
             * @description Host name of the replica.
             * @example tollgate-xds-6c8d7f9b5-4k2lm
             */
            replica: string;
            /**
             * Format: date-time
             * @description When the process started.
             */
            started: string;
            /** @description Warnings and errors in the log of the start, at most 100. */
            warnings: {
                /** @enum {unknown} */
                level: "warning" | "error";
                /** @example unknown setting, possibly misspelled */
                message: string;
                /**
                 * @example {
                 *       "variable": "DEBUG_PROT",
                 *       "meant": "DEBUG_PORT"
                 *     }
                 */
                details: {
                    [key: string]: string;
                };
            }[];
            settings: {
                /**
                 * @description The main variable.
                 * @example DEBUG_PORT
                 */
                name: string;
                /** @example Server */
                group: string;
                /** @example TCP port of the debug server. */
                description: string;
                /**
                 * @description The form of values.
                 * @example a TCP port, 0 to 65535
                 */
                form: string;
                /**
                 * @description The value may be a credential: there is no `value` and no `default`.
                 * @example false
                 */
                secret: boolean;
                /** @description Whether a value that is not empty is set. */
                set: boolean;
                /** @description Whether the value is another one than the default. */
                changed: boolean;
                /**
                 * @description The value in force. Passwords in URLs are hidden.
                 * @example 6071
                 */
                value?: string;
                /**
                 * @description Absent: the setting is required.
                 * @example 6070
                 */
                default?: string;
                /**
                 * @example environment
                 * @enum {unknown}
                 */
                source: "default" | "environment" | "file";
                /**
                 * @description The name that is set.
                 * @example DEBUG_PORT
                 */
                variable?: string;
                /**
                 * @description Path of the file, or the setting that the default depends on.
                 * @example /etc/tollgate/server.env
                 */
                from?: string;
            }[];
        };
        SigningKeys: {
            /**
             * @description The setting that has them.
             * @example SVC_JWT_KEYS_FILE
             */
            variable: string;
            /** @example /etc/tollgate/jwt-keys/keys.json */
            file?: string;
            /**
             * @description Longest lifetime of a token, in seconds.
             * @example 3600
             */
            token_lifetime: number;
            keys: {
                /** @example 2026-01-01-3f7c91ab */
                kid: string;
                /** @example ES256 */
                algorithm: string;
                /** @enum {unknown} */
                state: "signs" | "upcoming" | "verifies";
                /** @description Secrets are not in the JWKS. */
                in_jwks: boolean;
                /** Format: date-time */
                added_at?: string;
                /** Format: date-time */
                signs_since?: string;
                /** Format: date-time */
                replaced_at?: string;
                /**
                 * Format: date-time
                 * @description When this replica verified a signature of it last. Tokens are verified once while they are cached.
                 */
                last_verified_at?: string;
            }[];
            next: {
                /** @enum {unknown} */
                step: "new" | "rotate" | "retire";
                /** @example no rotation is under way */
                reason: string;
                /** Format: date-time */
                not_before?: string;
            };
        };
        RedirectCheck: {
            to: string;
            allowed: boolean;
            redirects_to: string;
            reason?: string;
            rules: {
                source: string;
                rule: string;
                matches: boolean;
                reason?: string;
            }[];
        };
        Organization: {
            /** Format: uuid */
            id: string;
            name: string;
            slug: string;
            plan?: string;
            limit?: {
                requests_per_unit: number;
                unit: string;
            };
            metadata: {
                [key: string]: unknown;
            };
            /** @description Role of users who join by a verified domain of their email. */
            domain_role?: string;
            /** @description Role of the user. Absent in responses to administrators. */
            role?: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        OrganizationList: {
            organizations: {
                /** Format: uuid */
                id: string;
                name: string;
                slug: string;
                plan?: string;
                limit?: {
                    requests_per_unit: number;
                    unit: string;
                };
                metadata: {
                    [key: string]: unknown;
                };
                /** @description Role of users who join by a verified domain of their email. */
                domain_role?: string;
                /** @description Role of the user. Absent in responses to administrators. */
                role?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
            /** @description Organizations that the user may join by the domain of their email. */
            joinable: {
                /** Format: uuid */
                id: string;
                name: string;
                slug: string;
            }[];
        };
        Domain: {
            domain: string;
            verified_at: string | null;
            /** @description The DNS record that proves the domain, until it is verified. */
            record?: {
                type: string;
                name: string;
                value: string;
            };
        };
        DomainList: {
            domains: {
                domain: string;
                verified_at: string | null;
                /** @description The DNS record that proves the domain, until it is verified. */
                record?: {
                    type: string;
                    name: string;
                    value: string;
                };
            }[];
        };
        OrganizationPage: {
            organizations: {
                /** Format: uuid */
                id: string;
                name: string;
                slug: string;
                plan?: string;
                limit?: {
                    requests_per_unit: number;
                    unit: string;
                };
                metadata: {
                    [key: string]: unknown;
                };
                /** @description Role of users who join by a verified domain of their email. */
                domain_role?: string;
                /** @description Role of the user. Absent in responses to administrators. */
                role?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
            pagination: {
                next_cursor?: string;
                has_more: boolean;
            };
        };
        Member: {
            /** Format: uuid */
            user_id: string;
            role: string;
            email: string;
            name?: string;
            /** Format: date-time */
            created_at: string;
        };
        Invitation: {
            /** Format: uuid */
            id: string;
            email: string;
            role: string;
            /** Format: uuid */
            invited_by?: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
        };
        InvitationList: {
            invitations: {
                /** Format: uuid */
                id: string;
                email: string;
                role: string;
                /** Format: uuid */
                invited_by?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                expires_at: string;
            }[];
        };
        MemberList: {
            members: {
                /** Format: uuid */
                user_id: string;
                role: string;
                email: string;
                name?: string;
                /** Format: date-time */
                created_at: string;
            }[];
        };
        MemberPage: {
            members: {
                /** Format: uuid */
                user_id: string;
                role: string;
                email: string;
                name?: string;
                /** Format: date-time */
                created_at: string;
            }[];
            /** @description Of a list by cursor. */
            pagination?: {
                next_cursor?: string;
                has_more: boolean;
            };
        };
        OrganizationToken: {
            /** @description A JWT with `org_id`, `org_role` and `org_slug`. */
            access_token: string;
            /** @enum {string} */
            token_type: "bearer";
            /** @description Seconds. */
            expires_in: number;
            /** @description Unix time in seconds. */
            expires_at: number;
            organization?: {
                /** Format: uuid */
                id: string;
                slug: string;
                role: string;
            };
        };
        ApiKey: {
            /** Format: uuid */
            id: string;
            name: string;
            prefix: string;
            last4: string;
            owner: {
                /** Format: uuid */
                user_id?: string;
                /** Format: uuid */
                org_id?: string;
            } | null;
            scopes: string[];
            role: string | null;
            plan: string | null;
            limit: {
                requests_per_unit: number;
                unit: string;
            } | null;
            expires_at: string | null;
            allowed_networks: string[];
            metadata: {
                [key: string]: unknown;
            };
            disabled: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            last_used_at: string | null;
            rotated_from: string | null;
            admin_scopes: string[];
            created_by: string;
        };
        CreatedApiKey: {
            /** Format: uuid */
            id: string;
            name: string;
            prefix: string;
            last4: string;
            owner: {
                /** Format: uuid */
                user_id?: string;
                /** Format: uuid */
                org_id?: string;
            } | null;
            scopes: string[];
            role: string | null;
            plan: string | null;
            limit: {
                requests_per_unit: number;
                unit: string;
            } | null;
            expires_at: string | null;
            allowed_networks: string[];
            metadata: {
                [key: string]: unknown;
            };
            disabled: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            last_used_at: string | null;
            rotated_from: string | null;
            admin_scopes: string[];
            created_by: string;
            /** @description Shown once. */
            key: string;
        };
        OwnApiKey: {
            /** Format: uuid */
            id: string;
            name: string;
            prefix: string;
            last4: string;
            owner: {
                /** Format: uuid */
                user_id?: string;
                /** Format: uuid */
                org_id?: string;
            } | null;
            scopes: string[];
            role: string | null;
            plan: string | null;
            limit: {
                requests_per_unit: number;
                unit: string;
            } | null;
            expires_at: string | null;
            allowed_networks: string[];
            metadata: {
                [key: string]: unknown;
            };
            disabled: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            last_used_at: string | null;
            rotated_from: string | null;
        };
        CreatedOwnApiKey: {
            /** Format: uuid */
            id: string;
            name: string;
            prefix: string;
            last4: string;
            owner: {
                /** Format: uuid */
                user_id?: string;
                /** Format: uuid */
                org_id?: string;
            } | null;
            scopes: string[];
            role: string | null;
            plan: string | null;
            limit: {
                requests_per_unit: number;
                unit: string;
            } | null;
            expires_at: string | null;
            allowed_networks: string[];
            metadata: {
                [key: string]: unknown;
            };
            disabled: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            last_used_at: string | null;
            rotated_from: string | null;
            /** @description Shown once. */
            key: string;
        };
        OwnApiKeyList: {
            api_keys: {
                /** Format: uuid */
                id: string;
                name: string;
                prefix: string;
                last4: string;
                owner: {
                    /** Format: uuid */
                    user_id?: string;
                    /** Format: uuid */
                    org_id?: string;
                } | null;
                scopes: string[];
                role: string | null;
                plan: string | null;
                limit: {
                    requests_per_unit: number;
                    unit: string;
                } | null;
                expires_at: string | null;
                allowed_networks: string[];
                metadata: {
                    [key: string]: unknown;
                };
                disabled: boolean;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
                last_used_at: string | null;
                rotated_from: string | null;
            }[];
        };
        VerifiedApiKey: {
            valid: boolean;
            /** @description `ok`, or the error code of the gateway. */
            code: string;
            /** @description Its attributes. */
            caller?: {
                [key: string]: unknown;
            };
            key?: {
                /** Format: uuid */
                id: string;
                name: string;
                admin_scopes: string[];
            };
        };
        VerifiedCredential: {
            valid: boolean;
            /** @description `ok`, or the error code of the admin API. */
            code: string;
            administrator?: {
                /** @enum {unknown} */
                kind: "administrator" | "api_key" | "service_token";
                id: string;
                /** @description Email address or phone number of a person, or name of a key. */
                name: string;
                admin_scopes: string[];
            };
        };
        CheckExplanation: {
            /** @description Method, host and path. */
            request: {
                [key: string]: unknown;
            };
            /** @description Why no policy was found. */
            reason?: string;
            /** @description Rules of routes that take the request, and how they were found. */
            route?: {
                [key: string]: unknown;
            };
            /** @description Attributes of the caller, or its `problem`. */
            caller?: {
                [key: string]: unknown;
            };
            policies?: {
                [key: string]: unknown;
            }[];
            /** @description The answer that the gateway would get. */
            decision: {
                [key: string]: unknown;
            };
        };
        ApiKeyList: {
            api_keys: {
                /** Format: uuid */
                id: string;
                name: string;
                prefix: string;
                last4: string;
                owner: {
                    /** Format: uuid */
                    user_id?: string;
                    /** Format: uuid */
                    org_id?: string;
                } | null;
                scopes: string[];
                role: string | null;
                plan: string | null;
                limit: {
                    requests_per_unit: number;
                    unit: string;
                } | null;
                expires_at: string | null;
                allowed_networks: string[];
                metadata: {
                    [key: string]: unknown;
                };
                disabled: boolean;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
                last_used_at: string | null;
                rotated_from: string | null;
                admin_scopes: string[];
                created_by: string;
            }[];
            pagination: {
                next_cursor?: string;
                has_more: boolean;
            };
        };
        CustomProvider: {
            /** Format: uuid */
            id: string;
            /** @enum {unknown} */
            provider_type: "oauth2" | "oidc";
            identifier: string;
            name: string;
            client_id: string;
            acceptable_client_ids: string[];
            scopes: string[];
            pkce_enabled: boolean;
            attribute_mapping: {
                [key: string]: unknown;
            };
            custom_claims_allowlist: string[];
            authorization_params: {
                [key: string]: unknown;
            };
            enabled: boolean;
            email_optional: boolean;
            issuer?: string;
            discovery_url?: string;
            skip_nonce_check: boolean;
            authorization_url?: string;
            token_url?: string;
            userinfo_url?: string;
            jwks_uri?: string;
            discovery_document?: {
                [key: string]: unknown;
            };
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        OAuthClient: {
            /** Format: uuid */
            client_id: string;
            /** @description Only when it was created. */
            client_secret?: string;
            /** @enum {unknown} */
            client_type: "public" | "confidential";
            redirect_uris: string[];
            token_endpoint_auth_method: string;
            grant_types: string[];
            response_types: string[];
            client_name?: string;
            client_uri?: string;
            logo_uri?: string;
            jwks?: {
                [key: string]: unknown;
            };
            jwks_uri?: string;
            scopes?: string[];
            audiences?: string[];
            plan?: string;
            role?: string;
            limit?: {
                [key: string]: unknown;
            };
            /** Format: uuid */
            org_id?: string;
            disabled?: boolean;
            document_url?: string;
            post_logout_redirect_uris?: string[];
            scope?: string;
            application_type?: string;
            contacts?: string[];
            policy_uri?: string;
            tos_uri?: string;
            initiate_login_uri?: string;
            default_max_age?: number;
            default_acr_values?: string[];
            require_auth_time?: boolean;
            software_id?: string;
            software_version?: string;
            require_pushed_authorization_requests?: boolean;
            dpop_bound_access_tokens?: boolean;
            backchannel_logout_uri?: string;
            backchannel_logout_session_required?: boolean;
            workload_identities?: {
                issuer: string;
                subject: string;
            }[];
            /** @enum {unknown} */
            access_token_typ?: "at+jwt";
            authorization_details_types?: string[];
            built_in?: boolean;
            /** @enum {unknown} */
            registration_type: "dynamic" | "manual";
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        RegisteredOAuthClient: {
            /** Format: uuid */
            client_id: string;
            /** @description Only when it was created. */
            client_secret?: string;
            /** @enum {unknown} */
            client_type: "public" | "confidential";
            redirect_uris: string[];
            token_endpoint_auth_method: string;
            grant_types: string[];
            response_types: string[];
            client_name?: string;
            client_uri?: string;
            logo_uri?: string;
            jwks?: {
                [key: string]: unknown;
            };
            jwks_uri?: string;
            scopes?: string[];
            audiences?: string[];
            plan?: string;
            role?: string;
            limit?: {
                [key: string]: unknown;
            };
            /** Format: uuid */
            org_id?: string;
            disabled?: boolean;
            document_url?: string;
            post_logout_redirect_uris?: string[];
            scope?: string;
            application_type?: string;
            contacts?: string[];
            policy_uri?: string;
            tos_uri?: string;
            initiate_login_uri?: string;
            default_max_age?: number;
            default_acr_values?: string[];
            require_auth_time?: boolean;
            software_id?: string;
            software_version?: string;
            require_pushed_authorization_requests?: boolean;
            dpop_bound_access_tokens?: boolean;
            backchannel_logout_uri?: string;
            backchannel_logout_session_required?: boolean;
            workload_identities?: {
                issuer: string;
                subject: string;
            }[];
            /** @enum {unknown} */
            access_token_typ?: "at+jwt";
            authorization_details_types?: string[];
            built_in?: boolean;
            /** @enum {unknown} */
            registration_type: "dynamic" | "manual";
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** @description Unix time in seconds. */
            client_id_issued_at: number;
            /** @description Always 0: it does not expire. */
            client_secret_expires_at?: number;
        };
        OAuthClientList: {
            clients: {
                /** Format: uuid */
                client_id: string;
                /** @description Only when it was created. */
                client_secret?: string;
                /** @enum {unknown} */
                client_type: "public" | "confidential";
                redirect_uris: string[];
                token_endpoint_auth_method: string;
                grant_types: string[];
                response_types: string[];
                client_name?: string;
                client_uri?: string;
                logo_uri?: string;
                jwks?: {
                    [key: string]: unknown;
                };
                jwks_uri?: string;
                scopes?: string[];
                audiences?: string[];
                plan?: string;
                role?: string;
                limit?: {
                    [key: string]: unknown;
                };
                /** Format: uuid */
                org_id?: string;
                disabled?: boolean;
                document_url?: string;
                post_logout_redirect_uris?: string[];
                scope?: string;
                application_type?: string;
                contacts?: string[];
                policy_uri?: string;
                tos_uri?: string;
                initiate_login_uri?: string;
                default_max_age?: number;
                default_acr_values?: string[];
                require_auth_time?: boolean;
                software_id?: string;
                software_version?: string;
                require_pushed_authorization_requests?: boolean;
                dpop_bound_access_tokens?: boolean;
                backchannel_logout_uri?: string;
                backchannel_logout_session_required?: boolean;
                workload_identities?: {
                    issuer: string;
                    subject: string;
                }[];
                /** @enum {unknown} */
                access_token_typ?: "at+jwt";
                authorization_details_types?: string[];
                built_in?: boolean;
                /** @enum {unknown} */
                registration_type: "dynamic" | "manual";
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
        };
        CustomProviderCheck: {
            ok: boolean;
            problem?: string;
            /** @description The metadata that the provider publishes now. */
            discovery_document?: {
                [key: string]: unknown;
            };
        };
        TokenIssuerList: {
            /** @description The routes file, where issuers are configured. */
            file?: string;
            issuers: {
                /** @example login */
                name: string;
                /** @description Expected `iss`. Absent: that of the cluster. */
                issuer?: string;
                discovery?: string;
                jwks_uri?: string;
                audiences: string[];
                algorithms: string[];
                /** @enum {unknown} */
                token_type: "access" | "at+jwt" | "id";
                tenants?: string[];
                kubernetes: boolean;
                /** @enum {unknown} */
                prefix: "name" | "none";
                /** @description Paths of claims by attribute. */
                claims: {
                    [key: string]: string;
                };
                kinds: {
                    client?: string;
                    user?: string;
                };
                introspection?: {
                    endpoint: string;
                    client_id: string;
                };
                /** @description Keys in the process that answers. */
                keys: {
                    /** @description Whether the last attempt to load them succeeded. */
                    current: boolean;
                    /** Format: date-time */
                    loaded_at?: string;
                    /** Format: date-time */
                    failed_at?: string;
                    /** @description Why the last failed attempt has failed. */
                    problem?: string;
                    /** @description As the issuer publishes it. */
                    issuer?: string;
                    jwks_uri?: string;
                    usable: {
                        kid?: string;
                        kty: string;
                        crv?: string;
                        alg?: string;
                    }[];
                    ignored: {
                        kid: string;
                        /** @example use is not sig */
                        reason: string;
                    }[];
                };
                /** @description Tokens verified by the process that answers, without those in its cache. */
                tokens: {
                    accepted: number;
                    rejected: number;
                    unavailable: number;
                };
                /**
                 * Format: date-time
                 * @description When that process last accepted a token.
                 */
                last_used_at?: string;
            }[];
        };
        CustomProviderList: {
            providers: {
                /** Format: uuid */
                id: string;
                /** @enum {unknown} */
                provider_type: "oauth2" | "oidc";
                identifier: string;
                name: string;
                client_id: string;
                acceptable_client_ids: string[];
                scopes: string[];
                pkce_enabled: boolean;
                attribute_mapping: {
                    [key: string]: unknown;
                };
                custom_claims_allowlist: string[];
                authorization_params: {
                    [key: string]: unknown;
                };
                enabled: boolean;
                email_optional: boolean;
                issuer?: string;
                discovery_url?: string;
                skip_nonce_check: boolean;
                authorization_url?: string;
                token_url?: string;
                userinfo_url?: string;
                jwks_uri?: string;
                discovery_document?: {
                    [key: string]: unknown;
                };
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
        };
        ImportResult: {
            imported: number;
            skipped: number;
            failed: number;
            last_line: number;
            errors: {
                line: number;
                code: string;
                message: string;
            }[];
            msg?: string;
        };
        Identity: {
            /** Format: uuid */
            identity_id: string;
            /** @description Id of the user at the provider. */
            id: string;
            /** Format: uuid */
            user_id: string;
            identity_data: {
                [key: string]: unknown;
            };
            provider: string;
            email?: string;
            /** Format: date-time */
            last_sign_in_at?: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        IdentityList: {
            identities: {
                /** Format: uuid */
                identity_id: string;
                /** @description Id of the user at the provider. */
                id: string;
                /** Format: uuid */
                user_id: string;
                identity_data: {
                    [key: string]: unknown;
                };
                provider: string;
                email?: string;
                /** Format: date-time */
                last_sign_in_at?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
        };
        User: {
            /** Format: uuid */
            id: string;
            aud: string;
            role: string;
            email: string;
            /** Format: date-time */
            email_confirmed_at?: string;
            /** Format: date-time */
            invited_at?: string;
            /** @description E.164 without +. */
            phone: string;
            /** Format: date-time */
            phone_confirmed_at?: string;
            /** Format: date-time */
            confirmation_sent_at?: string;
            /** Format: date-time */
            confirmed_at?: string;
            /** Format: date-time */
            recovery_sent_at?: string;
            new_email?: string;
            /** Format: date-time */
            email_change_sent_at?: string;
            new_phone?: string;
            /** Format: date-time */
            phone_change_sent_at?: string;
            /** Format: date-time */
            reauthentication_sent_at?: string;
            /** Format: date-time */
            last_sign_in_at?: string;
            app_metadata: {
                [key: string]: unknown;
            };
            user_metadata: {
                [key: string]: unknown;
            };
            factors?: {
                /** Format: uuid */
                id: string;
                /** @enum {unknown} */
                status: "unverified" | "verified";
                /** @enum {unknown} */
                factor_type: "totp" | "phone" | "webauthn" | "recovery_code";
                friendly_name?: string;
                phone?: string;
                /** Format: date-time */
                last_challenged_at?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
            identities: {
                /** Format: uuid */
                identity_id: string;
                /** @description Id of the user at the provider. */
                id: string;
                /** Format: uuid */
                user_id: string;
                identity_data: {
                    [key: string]: unknown;
                };
                provider: string;
                email?: string;
                /** Format: date-time */
                last_sign_in_at?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            banned_until?: string;
            /** Format: date-time */
            deleted_at?: string;
            is_anonymous: boolean;
        };
        UserList: {
            users: {
                /** Format: uuid */
                id: string;
                aud: string;
                role: string;
                email: string;
                /** Format: date-time */
                email_confirmed_at?: string;
                /** Format: date-time */
                invited_at?: string;
                /** @description E.164 without +. */
                phone: string;
                /** Format: date-time */
                phone_confirmed_at?: string;
                /** Format: date-time */
                confirmation_sent_at?: string;
                /** Format: date-time */
                confirmed_at?: string;
                /** Format: date-time */
                recovery_sent_at?: string;
                new_email?: string;
                /** Format: date-time */
                email_change_sent_at?: string;
                new_phone?: string;
                /** Format: date-time */
                phone_change_sent_at?: string;
                /** Format: date-time */
                reauthentication_sent_at?: string;
                /** Format: date-time */
                last_sign_in_at?: string;
                app_metadata: {
                    [key: string]: unknown;
                };
                user_metadata: {
                    [key: string]: unknown;
                };
                factors?: {
                    /** Format: uuid */
                    id: string;
                    /** @enum {unknown} */
                    status: "unverified" | "verified";
                    /** @enum {unknown} */
                    factor_type: "totp" | "phone" | "webauthn" | "recovery_code";
                    friendly_name?: string;
                    phone?: string;
                    /** Format: date-time */
                    last_challenged_at?: string;
                    /** Format: date-time */
                    created_at: string;
                    /** Format: date-time */
                    updated_at: string;
                }[];
                identities: {
                    /** Format: uuid */
                    identity_id: string;
                    /** @description Id of the user at the provider. */
                    id: string;
                    /** Format: uuid */
                    user_id: string;
                    identity_data: {
                        [key: string]: unknown;
                    };
                    provider: string;
                    email?: string;
                    /** Format: date-time */
                    last_sign_in_at?: string;
                    /** Format: date-time */
                    created_at: string;
                    /** Format: date-time */
                    updated_at: string;
                }[];
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
                /** Format: date-time */
                banned_until?: string;
                /** Format: date-time */
                deleted_at?: string;
                is_anonymous: boolean;
            }[];
            aud: string;
            /** @description Of a list by cursor. The last page has no `next_cursor`. */
            pagination?: {
                next_cursor?: string;
                has_more: boolean;
            };
        };
        Session: {
            /** @description A JWT. */
            access_token: string;
            /** @enum {string} */
            token_type: "bearer";
            /** @description Seconds. */
            expires_in: number;
            /** @description Unix time in seconds. */
            expires_at: number;
            refresh_token: string;
            /** @description After an email verification: what was verified. */
            type?: string;
            /** @description The access token of an identity provider. */
            provider_token?: string;
            provider_refresh_token?: string;
            /** @description The password is accepted, and no longer meets the requirements. */
            weak_password?: {
                message: string;
                reasons: ("length" | "characters" | "pwned")[];
            };
            /** @description After a recovery code. */
            recovery_codes_remaining?: number;
            user: {
                /** Format: uuid */
                id: string;
                aud: string;
                role: string;
                email: string;
                /** Format: date-time */
                email_confirmed_at?: string;
                /** Format: date-time */
                invited_at?: string;
                /** @description E.164 without +. */
                phone: string;
                /** Format: date-time */
                phone_confirmed_at?: string;
                /** Format: date-time */
                confirmation_sent_at?: string;
                /** Format: date-time */
                confirmed_at?: string;
                /** Format: date-time */
                recovery_sent_at?: string;
                new_email?: string;
                /** Format: date-time */
                email_change_sent_at?: string;
                new_phone?: string;
                /** Format: date-time */
                phone_change_sent_at?: string;
                /** Format: date-time */
                reauthentication_sent_at?: string;
                /** Format: date-time */
                last_sign_in_at?: string;
                app_metadata: {
                    [key: string]: unknown;
                };
                user_metadata: {
                    [key: string]: unknown;
                };
                factors?: {
                    /** Format: uuid */
                    id: string;
                    /** @enum {unknown} */
                    status: "unverified" | "verified";
                    /** @enum {unknown} */
                    factor_type: "totp" | "phone" | "webauthn" | "recovery_code";
                    friendly_name?: string;
                    phone?: string;
                    /** Format: date-time */
                    last_challenged_at?: string;
                    /** Format: date-time */
                    created_at: string;
                    /** Format: date-time */
                    updated_at: string;
                }[];
                identities: {
                    /** Format: uuid */
                    identity_id: string;
                    /** @description Id of the user at the provider. */
                    id: string;
                    /** Format: uuid */
                    user_id: string;
                    identity_data: {
                        [key: string]: unknown;
                    };
                    provider: string;
                    email?: string;
                    /** Format: date-time */
                    last_sign_in_at?: string;
                    /** Format: date-time */
                    created_at: string;
                    /** Format: date-time */
                    updated_at: string;
                }[];
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
                /** Format: date-time */
                banned_until?: string;
                /** Format: date-time */
                deleted_at?: string;
                is_anonymous: boolean;
            };
        };
        Factor: {
            /** Format: uuid */
            id: string;
            /** @enum {unknown} */
            status: "unverified" | "verified";
            /** @enum {unknown} */
            factor_type: "totp" | "phone" | "webauthn" | "recovery_code";
            friendly_name?: string;
            phone?: string;
            /** Format: date-time */
            last_challenged_at?: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        Passkey: {
            /** Format: uuid */
            id: string;
            friendly_name?: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            last_used_at?: string;
        };
        Settings: {
            external: {
                [key: string]: boolean;
            };
            disable_signup: boolean;
            autoconfirm: boolean;
            mailer_autoconfirm: boolean;
            phone_autoconfirm: boolean;
            sms_provider: string;
            saml_enabled: boolean;
            saml_private_key_next_configured: boolean;
            passkeys_enabled: boolean;
        };
        ActionLink: {
            /** Format: uuid */
            id: string;
            aud: string;
            role: string;
            email: string;
            /** Format: date-time */
            email_confirmed_at?: string;
            /** Format: date-time */
            invited_at?: string;
            /** @description E.164 without +. */
            phone: string;
            /** Format: date-time */
            phone_confirmed_at?: string;
            /** Format: date-time */
            confirmation_sent_at?: string;
            /** Format: date-time */
            confirmed_at?: string;
            /** Format: date-time */
            recovery_sent_at?: string;
            new_email?: string;
            /** Format: date-time */
            email_change_sent_at?: string;
            new_phone?: string;
            /** Format: date-time */
            phone_change_sent_at?: string;
            /** Format: date-time */
            reauthentication_sent_at?: string;
            /** Format: date-time */
            last_sign_in_at?: string;
            app_metadata: {
                [key: string]: unknown;
            };
            user_metadata: {
                [key: string]: unknown;
            };
            factors?: {
                /** Format: uuid */
                id: string;
                /** @enum {unknown} */
                status: "unverified" | "verified";
                /** @enum {unknown} */
                factor_type: "totp" | "phone" | "webauthn" | "recovery_code";
                friendly_name?: string;
                phone?: string;
                /** Format: date-time */
                last_challenged_at?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
            identities: {
                /** Format: uuid */
                identity_id: string;
                /** @description Id of the user at the provider. */
                id: string;
                /** Format: uuid */
                user_id: string;
                identity_data: {
                    [key: string]: unknown;
                };
                provider: string;
                email?: string;
                /** Format: date-time */
                last_sign_in_at?: string;
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                updated_at: string;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            banned_until?: string;
            /** Format: date-time */
            deleted_at?: string;
            is_anonymous: boolean;
            /** Format: uri */
            action_link: string;
            email_otp: string;
            hashed_token: string;
            verification_type: string;
            redirect_to: string;
        };
        /** @description Without an API version. */
        Error: {
            /** @description The HTTP status. */
            code: number;
            /** @description Stable; docs/errors.md lists them. */
            error_code: string;
            msg: string;
            /** @description Id of the request in the server log. */
            error_id?: string;
            weak_password?: {
                reasons: ("length" | "characters" | "pwned")[];
            };
        };
        /** @description With `X-Svc-Api-Version: 2024-01-01` or later. */
        VersionedError: {
            /** @description Stable; docs/errors.md lists them. */
            code: string;
            message: string;
            weak_password?: {
                reasons: ("length" | "characters" | "pwned")[];
            };
        };
        /** @description RFC 6749 §5.2. */
        OAuthError: {
            error: string;
            error_description: string;
        };
    };
    responses: {
        /** @description The request was refused. */
        Refused: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] | components["schemas"]["VersionedError"];
            };
        };
        /** @description The server failed to answer. Try again later. */
        Failed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] | components["schemas"]["VersionedError"];
            };
        };
        /** @description The request was refused. */
        OAuthRefused: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OAuthError"] | components["schemas"]["Error"] | components["schemas"]["VersionedError"];
            };
        };
        /** @description The server failed to answer. Try again later. */
        OAuthFailed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OAuthError"] | components["schemas"]["Error"] | components["schemas"]["VersionedError"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getReadiness: {
        parameters: {
            query?: {
                /** @description `false`: also ready if the database is read-only, which is enough for ext_authz */
                writes?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settings"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getKeySet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {}
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["KeySet"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getOpenIdConfiguration: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenIdConfiguration"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getOAuthMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenIdConfiguration"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getOpenApiDocument: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["Document"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListPasskeys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example [
                     *       {
                     *         "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "friendly_name": "Phone",
                     *         "created_at": "2026-01-01T09:30:00.000Z",
                     *         "last_used_at": "2026-01-01T09:30:00.000Z"
                     *       }
                     *     ]
                     */
                    "application/json": components["schemas"]["Passkey"][];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRemovePasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
                passkey_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListUsers: {
        parameters: {
            query?: {
                /** @description Page number, starting at 1. Default 1. */
                page?: string;
                /** @description Items per page, at most 1000. Default 50. */
                per_page?: string;
                /** @description `false`: without the total, which takes longer than the page. Default `true`. */
                total?: string;
                /** @description Of the `Link` header of the previous page, or its `pagination.next_cursor`. */
                cursor?: string;
                /** @description Items per page with a cursor, 1 to 1000. Default 50. */
                limit?: string;
                /** @description Part of email, phone or full name, case-insensitive. */
                filter?: string;
                /** @description How email, phone or full name starts, case-insensitive. By index. */
                prefix?: string;
                /** @description The email address, case-insensitive. */
                email?: string;
                /** @description The phone number. */
                phone?: string;
                /** @description Provider of an identity, such as `google`. */
                provider?: string;
                /** @description The role, such as `authenticated`. */
                role?: string;
                /** @description `plan` of the app metadata. Users without one are not listed under the default plan. */
                plan?: string;
                /** @description `true`: users with a confirmed email or phone; `false`: other users. */
                confirmed?: string;
                /** @description `true`: users whose ban has not ended; `false`: other users. */
                banned?: string;
                /** @description `true`: anonymous users; `false`: other users. */
                anonymous?: string;
                /** @description Created at or after this time (RFC 3339, or a date in UTC). */
                created_from?: string;
                /** @description Created before this time. */
                created_before?: string;
                /** @description Signed in last at or after this time. */
                last_sign_in_from?: string;
                /** @description Signed in last before this time. Users who never did are not listed. */
                last_sign_in_before?: string;
                /** @description `created_at asc` or `created_at desc` (the default). */
                sort?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "users": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "aud": "authenticated",
                     *           "role": "member",
                     *           "email": "ann@example.com",
                     *           "email_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *           "phone": "15551234567",
                     *           "phone_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *           "confirmation_sent_at": "2026-01-01T09:30:00.000Z",
                     *           "confirmed_at": "2026-01-01T09:30:00.000Z",
                     *           "new_email": "ann@example.org",
                     *           "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *           "app_metadata": {
                     *             "provider": "email"
                     *           },
                     *           "user_metadata": {
                     *             "name": "Ann"
                     *           },
                     *           "factors": [
                     *             {
                     *               "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *               "status": "unverified",
                     *               "factor_type": "totp",
                     *               "friendly_name": "Phone",
                     *               "phone": "15551234567",
                     *               "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *               "created_at": "2026-01-01T09:30:00.000Z",
                     *               "updated_at": "2026-01-01T09:30:00.000Z"
                     *             }
                     *           ],
                     *           "identities": [
                     *             {
                     *               "identity_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *               "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *               "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *               "identity_data": {
                     *                 "sub": "42"
                     *               },
                     *               "provider": "email",
                     *               "email": "ann@example.com",
                     *               "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *               "created_at": "2026-01-01T09:30:00.000Z",
                     *               "updated_at": "2026-01-01T09:30:00.000Z"
                     *             }
                     *           ],
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z",
                     *           "is_anonymous": false
                     *         }
                     *       ],
                     *       "aud": "authenticated",
                     *       "pagination": {
                     *         "has_more": false
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["UserList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCreateUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ann@example.com",
                 *       "password": "correct horse battery staple",
                 *       "email_confirm": true,
                 *       "user_metadata": {
                 *         "name": "Ann"
                 *       }
                 *     }
                 */
                "application/json": {
                    role?: string;
                    email?: string;
                    phone?: string;
                    password?: string;
                    password_hash?: string;
                    email_confirm?: boolean;
                    phone_confirm?: boolean;
                    user_metadata?: {
                        [key: string]: unknown;
                    };
                    app_metadata?: {
                        [key: string]: unknown;
                    };
                    ban_duration?: string;
                    id?: string;
                    aud?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "aud": "authenticated",
                     *       "role": "member",
                     *       "email": "ann@example.com",
                     *       "email_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "phone": "15551234567",
                     *       "phone_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmation_sent_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "new_email": "ann@example.org",
                     *       "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *       "app_metadata": {
                     *         "provider": "email"
                     *       },
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       },
                     *       "factors": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "status": "unverified",
                     *           "factor_type": "totp",
                     *           "friendly_name": "Phone",
                     *           "phone": "15551234567",
                     *           "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "identities": [
                     *         {
                     *           "identity_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "identity_data": {
                     *             "sub": "42"
                     *           },
                     *           "provider": "email",
                     *           "email": "ann@example.com",
                     *           "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "is_anonymous": false
                     *     }
                     */
                    "application/json": components["schemas"]["User"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGetUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "aud": "authenticated",
                     *       "role": "member",
                     *       "email": "ann@example.com",
                     *       "email_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "phone": "15551234567",
                     *       "phone_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmation_sent_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "new_email": "ann@example.org",
                     *       "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *       "app_metadata": {
                     *         "provider": "email"
                     *       },
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       },
                     *       "factors": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "status": "unverified",
                     *           "factor_type": "totp",
                     *           "friendly_name": "Phone",
                     *           "phone": "15551234567",
                     *           "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "identities": [
                     *         {
                     *           "identity_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "identity_data": {
                     *             "sub": "42"
                     *           },
                     *           "provider": "email",
                     *           "email": "ann@example.com",
                     *           "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "is_anonymous": false
                     *     }
                     */
                    "application/json": components["schemas"]["User"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminUpdateUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ban_duration": "24h"
                 *     }
                 */
                "application/json": {
                    role?: string;
                    email?: string;
                    phone?: string;
                    password?: string;
                    password_hash?: string;
                    email_confirm?: boolean;
                    phone_confirm?: boolean;
                    user_metadata?: {
                        [key: string]: unknown;
                    };
                    app_metadata?: {
                        [key: string]: unknown;
                    };
                    ban_duration?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "aud": "authenticated",
                     *       "role": "member",
                     *       "email": "ann@example.com",
                     *       "email_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "phone": "15551234567",
                     *       "phone_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmation_sent_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "new_email": "ann@example.org",
                     *       "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *       "app_metadata": {
                     *         "provider": "email"
                     *       },
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       },
                     *       "factors": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "status": "unverified",
                     *           "factor_type": "totp",
                     *           "friendly_name": "Phone",
                     *           "phone": "15551234567",
                     *           "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "identities": [
                     *         {
                     *           "identity_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "identity_data": {
                     *             "sub": "42"
                     *           },
                     *           "provider": "email",
                     *           "email": "ann@example.com",
                     *           "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "is_anonymous": false
                     *     }
                     */
                    "application/json": components["schemas"]["User"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCreateUserWithId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ban_duration": "24h"
                 *     }
                 */
                "application/json": {
                    role?: string;
                    email?: string;
                    phone?: string;
                    password?: string;
                    password_hash?: string;
                    email_confirm?: boolean;
                    phone_confirm?: boolean;
                    user_metadata?: {
                        [key: string]: unknown;
                    };
                    app_metadata?: {
                        [key: string]: unknown;
                    };
                    ban_duration?: string;
                    id?: string;
                    aud?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "aud": "authenticated",
                     *       "role": "member",
                     *       "email": "ann@example.com",
                     *       "email_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "phone": "15551234567",
                     *       "phone_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmation_sent_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "new_email": "ann@example.org",
                     *       "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *       "app_metadata": {
                     *         "provider": "email"
                     *       },
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       },
                     *       "factors": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "status": "unverified",
                     *           "factor_type": "totp",
                     *           "friendly_name": "Phone",
                     *           "phone": "15551234567",
                     *           "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "identities": [
                     *         {
                     *           "identity_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "identity_data": {
                     *             "sub": "42"
                     *           },
                     *           "provider": "email",
                     *           "email": "ann@example.com",
                     *           "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "is_anonymous": false
                     *     }
                     */
                    "application/json": components["schemas"]["User"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminDeleteUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "should_soft_delete": false
                 *     }
                 */
                "application/json": {
                    should_soft_delete?: boolean;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["Empty"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminInviteUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ann@example.com",
                 *       "redirect_to": "https://app.example.com/welcome"
                 *     }
                 */
                "application/json": {
                    email?: string;
                    data?: {
                        [key: string]: unknown;
                    };
                    redirect_to?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "aud": "authenticated",
                     *       "role": "member",
                     *       "email": "ann@example.com",
                     *       "email_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "phone": "15551234567",
                     *       "phone_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmation_sent_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "new_email": "ann@example.org",
                     *       "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *       "app_metadata": {
                     *         "provider": "email"
                     *       },
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       },
                     *       "factors": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "status": "unverified",
                     *           "factor_type": "totp",
                     *           "friendly_name": "Phone",
                     *           "phone": "15551234567",
                     *           "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "identities": [
                     *         {
                     *           "identity_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "identity_data": {
                     *             "sub": "42"
                     *           },
                     *           "provider": "email",
                     *           "email": "ann@example.com",
                     *           "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "is_anonymous": false
                     *     }
                     */
                    "application/json": components["schemas"]["User"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGenerateLink: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "signup",
                 *       "email": "ann@example.com",
                 *       "redirect_to": "https://app.example.com/welcome"
                 *     }
                 */
                "application/json": {
                    type?: string;
                    email?: string;
                    new_email?: string;
                    password?: string;
                    data?: {
                        [key: string]: unknown;
                    };
                    redirect_to?: string;
                    /** @description Ignored. auth-js sends it beside the query parameter `redirect_to`. */
                    redirectTo?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "aud": "authenticated",
                     *       "role": "member",
                     *       "email": "ann@example.com",
                     *       "email_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "phone": "15551234567",
                     *       "phone_confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmation_sent_at": "2026-01-01T09:30:00.000Z",
                     *       "confirmed_at": "2026-01-01T09:30:00.000Z",
                     *       "new_email": "ann@example.org",
                     *       "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *       "app_metadata": {
                     *         "provider": "email"
                     *       },
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       },
                     *       "factors": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "status": "unverified",
                     *           "factor_type": "totp",
                     *           "friendly_name": "Phone",
                     *           "phone": "15551234567",
                     *           "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "identities": [
                     *         {
                     *           "identity_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "identity_data": {
                     *             "sub": "42"
                     *           },
                     *           "provider": "email",
                     *           "email": "ann@example.com",
                     *           "last_sign_in_at": "2026-01-01T09:30:00.000Z",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "is_anonymous": false,
                     *       "action_link": "https://auth.example.com/verify?token=c9f1&type=invite",
                     *       "email_otp": "123456",
                     *       "hashed_token": "c9f1d2",
                     *       "verification_type": "signup",
                     *       "redirect_to": "https://app.example.com/welcome"
                     *     }
                     */
                    "application/json": components["schemas"]["ActionLink"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminExplainRedirect: {
        parameters: {
            query?: {
                /** @description A value of `redirect_to`, as the application sends it. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "to": "https://app.example.com/welcome",
                     *       "allowed": true,
                     *       "redirects_to": "https://app.example.com/welcome",
                     *       "rules": [
                     *         {
                     *           "source": "SVC_URI_ALLOW_LIST",
                     *           "rule": "https://app.example.com/**",
                     *           "matches": true
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RedirectCheck"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListAudit: {
        parameters: {
            query?: {
                /** @description Page number, starting at 1. Default 1. */
                page?: string;
                /** @description Items per page, at most 1000. Default 50. */
                per_page?: string;
                /** @description `false`: without the total, which takes longer than the page. Default `true`. */
                total?: string;
                /** @description Of the `Link` header of the previous page, or its `pagination.next_cursor`. */
                cursor?: string;
                /** @description Items per page with a cursor, 1 to 1000. Default 50. */
                limit?: string;
                /** @description `author:`, `action:` or `type:` and a part of the name or phone, action or log type. Reads all entries. */
                query?: string;
                /** @description The id of who acted. */
                actor_id?: string;
                /** @description The action, such as `login_failed`. */
                action?: string;
                /** @description The kind of actor, such as `administrator`. */
                kind?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example [
                     *       {
                     *         "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "payload": {},
                     *         "created_at": "2026-01-01T09:30:00.000Z",
                     *         "ip_address": "203.0.113.7"
                     *       }
                     *     ]
                     */
                    "application/json": components["schemas"]["AuditEntry"][];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListApiKeys: {
        parameters: {
            query?: {
                /** @description Id of the user who owns the keys. */
                user_id?: string;
                /** @description Id of the organisation that owns the keys. */
                org_id?: string;
                /** @description The plan of the keys. Keys with the plan of their owner are not listed. */
                plan?: string;
                /** @description How the keys start, without the `_`. */
                prefix?: string;
                /** @description The last four characters of the key. */
                last4?: string;
                /** @description Of the `Link` header of the previous page, or its `pagination.next_cursor`. */
                cursor?: string;
                /** @description Items per page with a cursor, 1 to 1000. Default 50. */
                limit?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "api_keys": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "name": "Payments",
                     *           "prefix": "tg_a1B2",
                     *           "last4": "7d6c",
                     *           "owner": {
                     *             "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *             "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34"
                     *           },
                     *           "scopes": [
                     *             "orders:read"
                     *           ],
                     *           "role": "member",
                     *           "plan": "pro",
                     *           "limit": {
                     *             "requests_per_unit": 1000,
                     *             "unit": "minute"
                     *           },
                     *           "expires_at": "2026-01-01T09:30:00.000Z",
                     *           "allowed_networks": [
                     *             "203.0.113.0/24"
                     *           ],
                     *           "metadata": {
                     *             "team": "payments"
                     *           },
                     *           "disabled": false,
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z",
                     *           "last_used_at": "2026-01-01T09:30:00.000Z",
                     *           "rotated_from": null,
                     *           "admin_scopes": [
                     *             "users:read"
                     *           ],
                     *           "created_by": "admin"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "has_more": false
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKeyList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCreateApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Payments",
                 *       "admin_scopes": [
                 *         "users:read"
                 *       ]
                 *     }
                 */
                "application/json": {
                    name?: string;
                    scopes?: string[];
                    admin_scopes?: string[];
                    role?: string;
                    plan?: string;
                    limit?: {
                        [key: string]: unknown;
                    };
                    expires_at?: string;
                    allowed_networks?: string[];
                    metadata?: {
                        [key: string]: unknown;
                    };
                    disabled?: boolean;
                    owner?: {
                        user_id?: string;
                        org_id?: string;
                    };
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "prefix": "tg_a1B2",
                     *       "last4": "7d6c",
                     *       "owner": {
                     *         "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34"
                     *       },
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "role": "member",
                     *       "plan": "pro",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "expires_at": "2026-01-01T09:30:00.000Z",
                     *       "allowed_networks": [
                     *         "203.0.113.0/24"
                     *       ],
                     *       "metadata": {
                     *         "team": "payments"
                     *       },
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_used_at": "2026-01-01T09:30:00.000Z",
                     *       "rotated_from": null,
                     *       "admin_scopes": [
                     *         "users:read"
                     *       ],
                     *       "created_by": "admin",
                     *       "key": "tg_a1B2_9f8e7d6c"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedApiKey"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminVerifyApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "key": "tg_a1B2_9f8e7d6c"
                 *     }
                 */
                "application/json": {
                    key: string;
                    address?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "valid": true,
                     *       "code": "123456",
                     *       "caller": {},
                     *       "key": {
                     *         "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "name": "Payments",
                     *         "admin_scopes": [
                     *           "users:read"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["VerifiedApiKey"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGetApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "prefix": "tg_a1B2",
                     *       "last4": "7d6c",
                     *       "owner": {
                     *         "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34"
                     *       },
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "role": "member",
                     *       "plan": "pro",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "expires_at": "2026-01-01T09:30:00.000Z",
                     *       "allowed_networks": [
                     *         "203.0.113.0/24"
                     *       ],
                     *       "metadata": {
                     *         "team": "payments"
                     *       },
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_used_at": "2026-01-01T09:30:00.000Z",
                     *       "rotated_from": null,
                     *       "admin_scopes": [
                     *         "users:read"
                     *       ],
                     *       "created_by": "admin"
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminUpdateApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "pro",
                 *       "limit": {
                 *         "requests_per_unit": 1000,
                 *         "unit": "minute"
                 *       }
                 *     }
                 */
                "application/json": {
                    name?: string;
                    scopes?: string[];
                    admin_scopes?: string[];
                    role?: string;
                    plan?: string;
                    limit?: {
                        [key: string]: unknown;
                    };
                    expires_at?: string;
                    allowed_networks?: string[];
                    metadata?: {
                        [key: string]: unknown;
                    };
                    disabled?: boolean;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "prefix": "tg_a1B2",
                     *       "last4": "7d6c",
                     *       "owner": {
                     *         "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34"
                     *       },
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "role": "member",
                     *       "plan": "pro",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "expires_at": "2026-01-01T09:30:00.000Z",
                     *       "allowed_networks": [
                     *         "203.0.113.0/24"
                     *       ],
                     *       "metadata": {
                     *         "team": "payments"
                     *       },
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_used_at": "2026-01-01T09:30:00.000Z",
                     *       "rotated_from": null,
                     *       "admin_scopes": [
                     *         "users:read"
                     *       ],
                     *       "created_by": "admin"
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRevokeApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRotateApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "grace": "24h"
                 *     }
                 */
                "application/json": {
                    grace?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "prefix": "tg_a1B2",
                     *       "last4": "7d6c",
                     *       "owner": {
                     *         "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34"
                     *       },
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "role": "member",
                     *       "plan": "pro",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "expires_at": "2026-01-01T09:30:00.000Z",
                     *       "allowed_networks": [
                     *         "203.0.113.0/24"
                     *       ],
                     *       "metadata": {
                     *         "team": "payments"
                     *       },
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_used_at": "2026-01-01T09:30:00.000Z",
                     *       "rotated_from": null,
                     *       "admin_scopes": [
                     *         "users:read"
                     *       ],
                     *       "created_by": "admin",
                     *       "key": "tg_a1B2_9f8e7d6c"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedApiKey"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminVerifyCredential: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "credential": "tg_a1B2_9f8e7d6c"
                 *     }
                 */
                "application/json": {
                    /** @example tg_a1B2_9f8e7d6c */
                    credential: string;
                    address?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "valid": true,
                     *       "code": "123456",
                     *       "administrator": {
                     *         "kind": "administrator",
                     *         "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "name": "Payments",
                     *         "admin_scopes": [
                     *           "users:read"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["VerifiedCredential"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminExplainCheck: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "method": "GET",
                 *       "url": "https://api.example.com/orders"
                 *     }
                 */
                "application/json": {
                    method: string;
                    url: string;
                    headers?: {
                        [key: string]: string;
                    };
                    /** @description An access token or an API key. */
                    credential?: string;
                    /** @description `user:<id>`, `key:<id>` or `client:<id>`. */
                    as?: string;
                    aal?: string;
                    scope?: string;
                    audience?: string;
                    org?: string;
                    /** @description IP address of the client. */
                    address?: string;
                    /** @description `namespace/name` of the policy to apply. */
                    policy?: string;
                    /** @description The route that the gateway would say. */
                    route?: {
                        kind: string;
                        namespace: string;
                        name: string;
                        section_name?: string;
                    };
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "request": {},
                     *       "route": {},
                     *       "caller": {},
                     *       "policies": [
                     *         {}
                     *       ],
                     *       "decision": {}
                     *     }
                     */
                    "application/json": components["schemas"]["CheckExplanation"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListIssuers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "file": "/etc/tollgate/routes.yaml",
                     *       "issuers": [
                     *         {
                     *           "name": "login",
                     *           "issuer": "https://login.example.org",
                     *           "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *           "audiences": [
                     *             "https://api.example.com"
                     *           ],
                     *           "algorithms": [
                     *             "ES256"
                     *           ],
                     *           "token_type": "access",
                     *           "kubernetes": false,
                     *           "prefix": "name",
                     *           "claims": {
                     *             "plan": "plan"
                     *           },
                     *           "kinds": {},
                     *           "keys": {
                     *             "current": true,
                     *             "loaded_at": "2026-01-01T09:30:00.000Z",
                     *             "failed_at": "2026-01-01T09:30:00.000Z",
                     *             "issuer": "https://login.example.org",
                     *             "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *             "usable": [
                     *               {
                     *                 "kid": "key-1",
                     *                 "kty": "EC",
                     *                 "crv": "P-256",
                     *                 "alg": "ES256"
                     *               }
                     *             ],
                     *             "ignored": [
                     *               {
                     *                 "kid": "key-1",
                     *                 "reason": "use is not sig"
                     *               }
                     *             ]
                     *           },
                     *           "tokens": {
                     *             "accepted": 1,
                     *             "rejected": 1,
                     *             "unavailable": 1
                     *           },
                     *           "last_used_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["TokenIssuerList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGetSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "service": "xds",
                     *       "version": "0.1.0",
                     *       "replica": "tollgate-xds-6c8d7f9b5-4k2lm",
                     *       "started": "2026-01-01T09:30:00.000Z",
                     *       "warnings": [
                     *         {
                     *           "level": "warning",
                     *           "message": "unknown setting, possibly misspelled",
                     *           "details": {
                     *             "variable": "DEBUG_PROT",
                     *             "meant": "DEBUG_PORT"
                     *           }
                     *         }
                     *       ],
                     *       "settings": [
                     *         {
                     *           "name": "DEBUG_PORT",
                     *           "group": "Server",
                     *           "description": "TCP port of the debug server.",
                     *           "form": "a TCP port, 0 to 65535",
                     *           "secret": false,
                     *           "set": true,
                     *           "changed": true,
                     *           "value": "6071",
                     *           "default": "6070",
                     *           "source": "environment",
                     *           "variable": "DEBUG_PORT",
                     *           "from": "/etc/tollgate/server.env"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ServiceSettings"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListSigningKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "variable": "SVC_JWT_KEYS_FILE",
                     *       "file": "/etc/tollgate/jwt-keys/keys.json",
                     *       "token_lifetime": 3600,
                     *       "keys": [
                     *         {
                     *           "kid": "2026-01-01-3f7c91ab",
                     *           "algorithm": "ES256",
                     *           "state": "signs",
                     *           "in_jwks": true,
                     *           "added_at": "2026-01-01T09:30:00.000Z",
                     *           "signs_since": "2026-01-01T09:30:00.000Z",
                     *           "replaced_at": "2026-01-01T09:30:00.000Z",
                     *           "last_verified_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "next": {
                     *         "step": "new",
                     *         "reason": "no rotation is under way",
                     *         "not_before": "2026-01-01T09:30:00.000Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SigningKeys"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListFailedEvents: {
        parameters: {
            query?: {
                /** @description Page number, starting at 1. Default 1. */
                page?: string;
                /** @description Items per page, at most 1000. Default 50. */
                per_page?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "events": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "type": "signup",
                     *           "webhook_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "data": {
                     *             "name": "Ann"
                     *           },
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "attempts": 3,
                     *           "failed_at": "2026-01-01T09:30:00.000Z",
                     *           "last_error": "status 503"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["EventList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRedeliverEvent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                event_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "type": "signup",
                     *       "webhook_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "data": {
                     *         "name": "Ann"
                     *       },
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "attempts": 3,
                     *       "failed_at": "2026-01-01T09:30:00.000Z",
                     *       "last_error": "status 503"
                     *     }
                     */
                    "application/json": components["schemas"]["Event"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "webhooks": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "name": "Payments",
                     *           "url": "https://api.example.com/orders",
                     *           "event_types": [
                     *             "user.created"
                     *           ],
                     *           "disabled": false,
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z",
                     *           "last_delivered_at": "2026-01-01T09:30:00.000Z",
                     *           "last_error": "status 503",
                     *           "secret": "JBSWY3DPEHPK3PXP"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCreateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Payments",
                 *       "url": "https://api.example.com/orders",
                 *       "event_types": [
                 *         "user.created"
                 *       ]
                 *     }
                 */
                "application/json": {
                    name?: string;
                    url?: string;
                    event_types?: string[];
                    disabled?: boolean;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "url": "https://api.example.com/orders",
                     *       "event_types": [
                     *         "user.created"
                     *       ],
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_delivered_at": "2026-01-01T09:30:00.000Z",
                     *       "last_error": "status 503",
                     *       "secret": "JBSWY3DPEHPK3PXP"
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGetWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "url": "https://api.example.com/orders",
                     *       "event_types": [
                     *         "user.created"
                     *       ],
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_delivered_at": "2026-01-01T09:30:00.000Z",
                     *       "last_error": "status 503",
                     *       "secret": "JBSWY3DPEHPK3PXP"
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminUpdateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "disabled": false
                 *     }
                 */
                "application/json": {
                    name?: string;
                    url?: string;
                    event_types?: string[];
                    disabled?: boolean;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "url": "https://api.example.com/orders",
                     *       "event_types": [
                     *         "user.created"
                     *       ],
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_delivered_at": "2026-01-01T09:30:00.000Z",
                     *       "last_error": "status 503",
                     *       "secret": "JBSWY3DPEHPK3PXP"
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminDeleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "grace": "24h"
                 *     }
                 */
                "application/json": {
                    grace?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "url": "https://api.example.com/orders",
                     *       "event_types": [
                     *         "user.created"
                     *       ],
                     *       "disabled": false,
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "last_delivered_at": "2026-01-01T09:30:00.000Z",
                     *       "last_error": "status 503",
                     *       "secret": "JBSWY3DPEHPK3PXP"
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminTestWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "delivered": true
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookTest"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListFactors: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example [
                     *       {
                     *         "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "status": "unverified",
                     *         "factor_type": "totp",
                     *         "friendly_name": "Phone",
                     *         "phone": "15551234567",
                     *         "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *         "created_at": "2026-01-01T09:30:00.000Z",
                     *         "updated_at": "2026-01-01T09:30:00.000Z"
                     *       }
                     *     ]
                     */
                    "application/json": components["schemas"]["Factor"][];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminUpdateFactor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
                factor_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "friendly_name": "Phone"
                 *     }
                 */
                "application/json": {
                    friendly_name?: string;
                    phone?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "status": "unverified",
                     *       "factor_type": "totp",
                     *       "friendly_name": "Phone",
                     *       "phone": "15551234567",
                     *       "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Factor"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRemoveFactor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
                factor_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "status": "unverified",
                     *       "factor_type": "totp",
                     *       "friendly_name": "Phone",
                     *       "phone": "15551234567",
                     *       "last_challenged_at": "2026-01-01T09:30:00.000Z",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Factor"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminSendRecovery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["Empty"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sessions": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "current": true,
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "refreshed_at": "2026-01-01T09:30:00.000Z",
                     *           "used_at": "2026-01-01T09:30:00.000Z",
                     *           "token_expires_at": "2026-01-01T09:30:00.000Z",
                     *           "not_after": "2026-01-01T09:30:00.000Z",
                     *           "aal": "aal1",
                     *           "amr": [
                     *             {
                     *               "method": "GET",
                     *               "timestamp": 1
                     *             }
                     *           ],
                     *           "user_agent": "Mozilla/5.0",
                     *           "ip": "203.0.113.7",
                     *           "client_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "scope": "openid email"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["SessionList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminEndSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["Empty"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminEndSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["Empty"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListOrganizations: {
        parameters: {
            query?: {
                /** @description Of the `Link` header of the previous page, or its `pagination.next_cursor`. */
                cursor?: string;
                /** @description Items per page with a cursor, 1 to 1000. Default 50. */
                limit?: string;
                /** @description The plan. */
                plan?: string;
                /** @description The slug. */
                slug?: string;
                /** @description Id of a member. */
                user_id?: string;
                /** @description `true`: organizations without an owner, whose owners were deleted. */
                without_owner?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "organizations": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "name": "Payments",
                     *           "slug": "payments",
                     *           "plan": "pro",
                     *           "limit": {
                     *             "requests_per_unit": 1000,
                     *             "unit": "minute"
                     *           },
                     *           "metadata": {
                     *             "team": "payments"
                     *           },
                     *           "domain_role": "member",
                     *           "role": "member",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "has_more": false
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["OrganizationPage"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCreateOrganization: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Payments",
                 *       "slug": "payments",
                 *       "plan": "pro"
                 *     }
                 */
                "application/json": {
                    name?: string;
                    slug?: string;
                    plan?: string;
                    /** @description `{ requests_per_unit, unit }`, or `{}` for none. */
                    limit?: {
                        [key: string]: unknown;
                    };
                    metadata?: {
                        [key: string]: unknown;
                    };
                    domain_role?: string;
                    owner_id?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "slug": "payments",
                     *       "plan": "pro",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "metadata": {
                     *         "team": "payments"
                     *       },
                     *       "domain_role": "member",
                     *       "role": "member",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Organization"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGetOrganization: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "slug": "payments",
                     *       "plan": "pro",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "metadata": {
                     *         "team": "payments"
                     *       },
                     *       "domain_role": "member",
                     *       "role": "member",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Organization"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminUpdateOrganization: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "pro",
                 *       "limit": {
                 *         "requests_per_unit": 1000,
                 *         "unit": "minute"
                 *       }
                 *     }
                 */
                "application/json": {
                    name?: string;
                    slug?: string;
                    plan?: string;
                    /** @description `{ requests_per_unit, unit }`, or `{}` for none. */
                    limit?: {
                        [key: string]: unknown;
                    };
                    metadata?: {
                        [key: string]: unknown;
                    };
                    domain_role?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "name": "Payments",
                     *       "slug": "payments",
                     *       "plan": "pro",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "metadata": {
                     *         "team": "payments"
                     *       },
                     *       "domain_role": "member",
                     *       "role": "member",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Organization"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminDeleteOrganization: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListMembers: {
        parameters: {
            query?: {
                /** @description Of the `Link` header of the previous page, or its `pagination.next_cursor`. */
                cursor?: string;
                /** @description Items per page with a cursor, 1 to 1000. Default 50. */
                limit?: string;
            };
            header?: never;
            path: {
                organization_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "members": [
                     *         {
                     *           "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "role": "member",
                     *           "email": "ann@example.com",
                     *           "name": "Payments",
                     *           "created_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "has_more": false
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["MemberPage"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminSetMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "member"
                 *     }
                 */
                "application/json": {
                    role?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "user_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "role": "member",
                     *       "email": "ann@example.com",
                     *       "name": "Payments",
                     *       "created_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Member"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRemoveMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListDomains: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domains": [
                     *         {
                     *           "domain": "example.com",
                     *           "verified_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["DomainList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminClaimDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "domain": "example.com"
                 *     }
                 */
                "application/json": {
                    domain?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "example.com",
                     *       "verified_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Domain"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminVerifyDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "example.com",
                     *       "verified_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Domain"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminSetDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "example.com",
                     *       "verified_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Domain"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRemoveDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization_id: string;
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListProviders: {
        parameters: {
            query?: {
                /** @description `oauth2` or `oidc`. Default: both. */
                type?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "providers": [
                     *         {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "provider_type": "oidc",
                     *           "identifier": "custom:login",
                     *           "name": "Payments",
                     *           "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                     *           "acceptable_client_ids": [
                     *             "shop-ios"
                     *           ],
                     *           "scopes": [
                     *             "orders:read"
                     *           ],
                     *           "pkce_enabled": true,
                     *           "attribute_mapping": {},
                     *           "custom_claims_allowlist": [
                     *             "department"
                     *           ],
                     *           "authorization_params": {},
                     *           "enabled": true,
                     *           "email_optional": true,
                     *           "issuer": "https://login.example.org",
                     *           "skip_nonce_check": true,
                     *           "authorization_url": "https://login.example.org/authorize",
                     *           "token_url": "https://login.example.org/token",
                     *           "userinfo_url": "https://login.example.org/userinfo",
                     *           "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *           "discovery_document": {},
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["CustomProviderList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCreateProvider: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "provider_type": "oidc",
                 *       "identifier": "custom:login",
                 *       "name": "Payments",
                 *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                 *       "client_secret": "s3cr3t-of-the-client",
                 *       "issuer": "https://login.example.org"
                 *     }
                 */
                "application/json": {
                    provider_type?: string;
                    identifier?: string;
                    name?: string;
                    client_id?: string;
                    client_secret?: string;
                    acceptable_client_ids?: string[];
                    scopes?: string[];
                    pkce_enabled?: boolean;
                    attribute_mapping?: {
                        [key: string]: unknown;
                    };
                    custom_claims_allowlist?: string[];
                    authorization_params?: {
                        [key: string]: unknown;
                    };
                    enabled?: boolean;
                    email_optional?: boolean;
                    issuer?: string;
                    discovery_url?: string;
                    skip_nonce_check?: boolean;
                    authorization_url?: string;
                    token_url?: string;
                    userinfo_url?: string;
                    jwks_uri?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "provider_type": "oidc",
                     *       "identifier": "custom:login",
                     *       "name": "Payments",
                     *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                     *       "acceptable_client_ids": [
                     *         "shop-ios"
                     *       ],
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "pkce_enabled": true,
                     *       "attribute_mapping": {},
                     *       "custom_claims_allowlist": [
                     *         "department"
                     *       ],
                     *       "authorization_params": {},
                     *       "enabled": true,
                     *       "email_optional": true,
                     *       "issuer": "https://login.example.org",
                     *       "skip_nonce_check": true,
                     *       "authorization_url": "https://login.example.org/authorize",
                     *       "token_url": "https://login.example.org/token",
                     *       "userinfo_url": "https://login.example.org/userinfo",
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "discovery_document": {},
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["CustomProvider"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGetProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                identifier: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "provider_type": "oidc",
                     *       "identifier": "custom:login",
                     *       "name": "Payments",
                     *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                     *       "acceptable_client_ids": [
                     *         "shop-ios"
                     *       ],
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "pkce_enabled": true,
                     *       "attribute_mapping": {},
                     *       "custom_claims_allowlist": [
                     *         "department"
                     *       ],
                     *       "authorization_params": {},
                     *       "enabled": true,
                     *       "email_optional": true,
                     *       "issuer": "https://login.example.org",
                     *       "skip_nonce_check": true,
                     *       "authorization_url": "https://login.example.org/authorize",
                     *       "token_url": "https://login.example.org/token",
                     *       "userinfo_url": "https://login.example.org/userinfo",
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "discovery_document": {},
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["CustomProvider"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminUpdateProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                identifier: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "enabled": true
                 *     }
                 */
                "application/json": {
                    provider_type?: string;
                    identifier?: string;
                    name?: string;
                    client_id?: string;
                    client_secret?: string;
                    acceptable_client_ids?: string[];
                    scopes?: string[];
                    pkce_enabled?: boolean;
                    attribute_mapping?: {
                        [key: string]: unknown;
                    };
                    custom_claims_allowlist?: string[];
                    authorization_params?: {
                        [key: string]: unknown;
                    };
                    enabled?: boolean;
                    email_optional?: boolean;
                    issuer?: string;
                    discovery_url?: string;
                    skip_nonce_check?: boolean;
                    authorization_url?: string;
                    token_url?: string;
                    userinfo_url?: string;
                    jwks_uri?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "provider_type": "oidc",
                     *       "identifier": "custom:login",
                     *       "name": "Payments",
                     *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                     *       "acceptable_client_ids": [
                     *         "shop-ios"
                     *       ],
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "pkce_enabled": true,
                     *       "attribute_mapping": {},
                     *       "custom_claims_allowlist": [
                     *         "department"
                     *       ],
                     *       "authorization_params": {},
                     *       "enabled": true,
                     *       "email_optional": true,
                     *       "issuer": "https://login.example.org",
                     *       "skip_nonce_check": true,
                     *       "authorization_url": "https://login.example.org/authorize",
                     *       "token_url": "https://login.example.org/token",
                     *       "userinfo_url": "https://login.example.org/userinfo",
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "discovery_document": {},
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["CustomProvider"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminDeleteProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                identifier: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCheckProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                identifier: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "discovery_document": {}
                     *     }
                     */
                    "application/json": components["schemas"]["CustomProviderCheck"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminListOAuthClients: {
        parameters: {
            query?: {
                /** @description Page number, starting at 1. Default 1. */
                page?: string;
                /** @description Items per page, at most 1000. Default 50. */
                per_page?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "clients": [
                     *         {
                     *           "client_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "client_secret": "s3cr3t-of-the-client",
                     *           "client_type": "confidential",
                     *           "redirect_uris": [
                     *             "https://shop.example.com/callback"
                     *           ],
                     *           "token_endpoint_auth_method": "client_secret_basic",
                     *           "grant_types": [
                     *             "authorization_code",
                     *             "refresh_token"
                     *           ],
                     *           "response_types": [
                     *             "code"
                     *           ],
                     *           "client_name": "Shop",
                     *           "client_uri": "https://shop.example.com",
                     *           "logo_uri": "https://shop.example.com/logo.svg",
                     *           "jwks": {},
                     *           "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *           "scopes": [
                     *             "orders:read"
                     *           ],
                     *           "audiences": [
                     *             "https://api.example.com"
                     *           ],
                     *           "plan": "pro",
                     *           "role": "member",
                     *           "limit": {
                     *             "requests_per_unit": 1000,
                     *             "unit": "minute"
                     *           },
                     *           "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "disabled": false,
                     *           "scope": "openid email",
                     *           "default_max_age": 1,
                     *           "require_auth_time": true,
                     *           "require_pushed_authorization_requests": true,
                     *           "dpop_bound_access_tokens": true,
                     *           "backchannel_logout_session_required": true,
                     *           "workload_identities": [
                     *             {
                     *               "issuer": "https://login.example.org",
                     *               "subject": "system:serviceaccount:shop:orders"
                     *             }
                     *           ],
                     *           "access_token_typ": "at+jwt",
                     *           "built_in": false,
                     *           "registration_type": "dynamic",
                     *           "created_at": "2026-01-01T09:30:00.000Z",
                     *           "updated_at": "2026-01-01T09:30:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthClientList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminCreateOAuthClient: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_name": "Shop",
                 *       "redirect_uris": [
                 *         "https://shop.example.com/callback"
                 *       ],
                 *       "client_type": "confidential"
                 *     }
                 */
                "application/json": {
                    redirect_uris?: string[];
                    grant_types?: string[];
                    client_type?: string;
                    token_endpoint_auth_method?: string;
                    client_name?: string;
                    client_uri?: string;
                    logo_uri?: string;
                    post_logout_redirect_uris?: string[];
                    scope?: string;
                    application_type?: string;
                    contacts?: string[];
                    policy_uri?: string;
                    tos_uri?: string;
                    initiate_login_uri?: string;
                    default_max_age?: number;
                    default_acr_values?: string[];
                    require_auth_time?: boolean;
                    software_id?: string;
                    software_version?: string;
                    backchannel_logout_uri?: string;
                    backchannel_logout_session_required?: boolean;
                    require_pushed_authorization_requests?: boolean;
                    dpop_bound_access_tokens?: boolean;
                    access_token_typ?: string;
                    authorization_details_types?: string[];
                    workload_identities?: {
                        issuer: string;
                        subject: string;
                    }[];
                    jwks?: {
                        [key: string]: unknown;
                    };
                    jwks_uri?: string;
                    scopes?: string[];
                    audiences?: string[];
                    plan?: string;
                    role?: string;
                    limit?: {
                        [key: string]: unknown;
                    };
                    org_id?: string;
                    disabled?: boolean;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "client_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "client_secret": "s3cr3t-of-the-client",
                     *       "client_type": "confidential",
                     *       "redirect_uris": [
                     *         "https://shop.example.com/callback"
                     *       ],
                     *       "token_endpoint_auth_method": "client_secret_basic",
                     *       "grant_types": [
                     *         "authorization_code",
                     *         "refresh_token"
                     *       ],
                     *       "response_types": [
                     *         "code"
                     *       ],
                     *       "client_name": "Shop",
                     *       "client_uri": "https://shop.example.com",
                     *       "logo_uri": "https://shop.example.com/logo.svg",
                     *       "jwks": {},
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "audiences": [
                     *         "https://api.example.com"
                     *       ],
                     *       "plan": "pro",
                     *       "role": "member",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "disabled": false,
                     *       "scope": "openid email",
                     *       "default_max_age": 1,
                     *       "require_auth_time": true,
                     *       "require_pushed_authorization_requests": true,
                     *       "dpop_bound_access_tokens": true,
                     *       "backchannel_logout_session_required": true,
                     *       "workload_identities": [
                     *         {
                     *           "issuer": "https://login.example.org",
                     *           "subject": "system:serviceaccount:shop:orders"
                     *         }
                     *       ],
                     *       "access_token_typ": "at+jwt",
                     *       "built_in": false,
                     *       "registration_type": "dynamic",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthClient"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminGetOAuthClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "client_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "client_secret": "s3cr3t-of-the-client",
                     *       "client_type": "confidential",
                     *       "redirect_uris": [
                     *         "https://shop.example.com/callback"
                     *       ],
                     *       "token_endpoint_auth_method": "client_secret_basic",
                     *       "grant_types": [
                     *         "authorization_code",
                     *         "refresh_token"
                     *       ],
                     *       "response_types": [
                     *         "code"
                     *       ],
                     *       "client_name": "Shop",
                     *       "client_uri": "https://shop.example.com",
                     *       "logo_uri": "https://shop.example.com/logo.svg",
                     *       "jwks": {},
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "audiences": [
                     *         "https://api.example.com"
                     *       ],
                     *       "plan": "pro",
                     *       "role": "member",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "disabled": false,
                     *       "scope": "openid email",
                     *       "default_max_age": 1,
                     *       "require_auth_time": true,
                     *       "require_pushed_authorization_requests": true,
                     *       "dpop_bound_access_tokens": true,
                     *       "backchannel_logout_session_required": true,
                     *       "workload_identities": [
                     *         {
                     *           "issuer": "https://login.example.org",
                     *           "subject": "system:serviceaccount:shop:orders"
                     *         }
                     *       ],
                     *       "access_token_typ": "at+jwt",
                     *       "built_in": false,
                     *       "registration_type": "dynamic",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthClient"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminUpdateOAuthClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "redirect_uris": [
                 *         "https://shop.example.com/callback"
                 *       ]
                 *     }
                 */
                "application/json": {
                    redirect_uris?: string[];
                    grant_types?: string[];
                    client_type?: string;
                    token_endpoint_auth_method?: string;
                    client_name?: string;
                    client_uri?: string;
                    logo_uri?: string;
                    post_logout_redirect_uris?: string[];
                    scope?: string;
                    application_type?: string;
                    contacts?: string[];
                    policy_uri?: string;
                    tos_uri?: string;
                    initiate_login_uri?: string;
                    default_max_age?: number;
                    default_acr_values?: string[];
                    require_auth_time?: boolean;
                    software_id?: string;
                    software_version?: string;
                    backchannel_logout_uri?: string;
                    backchannel_logout_session_required?: boolean;
                    require_pushed_authorization_requests?: boolean;
                    dpop_bound_access_tokens?: boolean;
                    access_token_typ?: string;
                    authorization_details_types?: string[];
                    workload_identities?: {
                        issuer: string;
                        subject: string;
                    }[];
                    jwks?: {
                        [key: string]: unknown;
                    };
                    jwks_uri?: string;
                    scopes?: string[];
                    audiences?: string[];
                    plan?: string;
                    role?: string;
                    limit?: {
                        [key: string]: unknown;
                    };
                    org_id?: string;
                    disabled?: boolean;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "client_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "client_secret": "s3cr3t-of-the-client",
                     *       "client_type": "confidential",
                     *       "redirect_uris": [
                     *         "https://shop.example.com/callback"
                     *       ],
                     *       "token_endpoint_auth_method": "client_secret_basic",
                     *       "grant_types": [
                     *         "authorization_code",
                     *         "refresh_token"
                     *       ],
                     *       "response_types": [
                     *         "code"
                     *       ],
                     *       "client_name": "Shop",
                     *       "client_uri": "https://shop.example.com",
                     *       "logo_uri": "https://shop.example.com/logo.svg",
                     *       "jwks": {},
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "audiences": [
                     *         "https://api.example.com"
                     *       ],
                     *       "plan": "pro",
                     *       "role": "member",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "disabled": false,
                     *       "scope": "openid email",
                     *       "default_max_age": 1,
                     *       "require_auth_time": true,
                     *       "require_pushed_authorization_requests": true,
                     *       "dpop_bound_access_tokens": true,
                     *       "backchannel_logout_session_required": true,
                     *       "workload_identities": [
                     *         {
                     *           "issuer": "https://login.example.org",
                     *           "subject": "system:serviceaccount:shop:orders"
                     *         }
                     *       ],
                     *       "access_token_typ": "at+jwt",
                     *       "built_in": false,
                     *       "registration_type": "dynamic",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthClient"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminDeleteOAuthClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminRegenerateOAuthClientSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "client_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "client_secret": "s3cr3t-of-the-client",
                     *       "client_type": "confidential",
                     *       "redirect_uris": [
                     *         "https://shop.example.com/callback"
                     *       ],
                     *       "token_endpoint_auth_method": "client_secret_basic",
                     *       "grant_types": [
                     *         "authorization_code",
                     *         "refresh_token"
                     *       ],
                     *       "response_types": [
                     *         "code"
                     *       ],
                     *       "client_name": "Shop",
                     *       "client_uri": "https://shop.example.com",
                     *       "logo_uri": "https://shop.example.com/logo.svg",
                     *       "jwks": {},
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "audiences": [
                     *         "https://api.example.com"
                     *       ],
                     *       "plan": "pro",
                     *       "role": "member",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "disabled": false,
                     *       "scope": "openid email",
                     *       "default_max_age": 1,
                     *       "require_auth_time": true,
                     *       "require_pushed_authorization_requests": true,
                     *       "dpop_bound_access_tokens": true,
                     *       "backchannel_logout_session_required": true,
                     *       "workload_identities": [
                     *         {
                     *           "issuer": "https://login.example.org",
                     *           "subject": "system:serviceaccount:shop:orders"
                     *         }
                     *       ],
                     *       "access_token_typ": "at+jwt",
                     *       "built_in": false,
                     *       "registration_type": "dynamic",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthClient"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    createOAuthToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "grant_type": "authorization_code",
                 *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                 *       "code": "123456",
                 *       "redirect_uri": "https://shop.example.com/callback",
                 *       "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
                 *     }
                 */
                "application/json": {
                    grant_type?: string;
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                    code?: string;
                    redirect_uri?: string;
                    code_verifier?: string;
                    refresh_token?: string;
                    subject_token?: string;
                    subject_token_type?: string;
                    actor_token?: string;
                    requested_token_type?: string;
                    audience?: string;
                    assertion?: string;
                    device_code?: string;
                    scope?: string;
                    authorization_details?: string;
                    resource?: string | string[];
                };
                "application/x-www-form-urlencoded": {
                    grant_type?: string;
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                    code?: string;
                    redirect_uri?: string;
                    code_verifier?: string;
                    refresh_token?: string;
                    subject_token?: string;
                    subject_token_type?: string;
                    actor_token?: string;
                    requested_token_type?: string;
                    audience?: string;
                    assertion?: string;
                    device_code?: string;
                    scope?: string;
                    authorization_details?: string;
                    resource?: string | string[];
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "access_token": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIwMTk4In0.c2ln",
                     *       "token_type": "Bearer",
                     *       "expires_in": 3600,
                     *       "refresh_token": "v1.MRjcy8nQ",
                     *       "scope": "openid email",
                     *       "authorization_details": [
                     *         {}
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ClientToken"];
                };
            };
            "4XX": components["responses"]["OAuthRefused"];
            "5XX": components["responses"]["OAuthFailed"];
        };
    };
    authorizeDevice: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                 *       "scope": "openid email"
                 *     }
                 */
                "application/json": {
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                    scope?: string;
                    authorization_details?: string;
                    resource?: string | string[];
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "device_code": "GmRhmhcxhwAzkoEqiMEg",
                     *       "user_code": "WDJB-MJHT",
                     *       "verification_uri": "https://auth.example.com/device",
                     *       "verification_uri_complete": "https://auth.example.com/device?user_code=WDJB-MJHT",
                     *       "expires_in": 3600,
                     *       "interval": 1
                     *     }
                     */
                    "application/json": components["schemas"]["DeviceAuthorization"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    pushAuthorizationRequest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11"
                 *     }
                 */
                "application/json": {
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "request_uri": "urn:ietf:params:oauth:request_uri:c9f1d2",
                     *       "expires_in": 3600
                     *     }
                     */
                    "application/json": components["schemas"]["PushedRequest"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    revokeOAuthToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                 *       "token": "123456"
                 *     }
                 */
                "application/json": {
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                    token?: string;
                    token_type_hint?: string;
                };
                "application/x-www-form-urlencoded": {
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                    token?: string;
                    token_type_hint?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["Empty"];
                };
            };
            "4XX": components["responses"]["OAuthRefused"];
            "5XX": components["responses"]["OAuthFailed"];
        };
    };
    introspectToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                 *       "client_secret": "s3cr3t-of-the-client",
                 *       "token": "123456"
                 *     }
                 */
                "application/json": {
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                    token?: string;
                    token_type_hint?: string;
                };
                "application/x-www-form-urlencoded": {
                    client_id?: string;
                    client_secret?: string;
                    client_assertion?: string;
                    client_assertion_type?: string;
                    token?: string;
                    token_type_hint?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "active": true,
                     *       "token_type": "bearer",
                     *       "scope": "openid email",
                     *       "authorization_details": [
                     *         {}
                     *       ],
                     *       "client_id": "0198f0a2-1d4c-7e10-8c3b-7d2f9a6b4e11",
                     *       "sub": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "aud": "authenticated",
                     *       "iss": "https://auth.example.com",
                     *       "exp": 1,
                     *       "iat": 1,
                     *       "jti": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34"
                     *     }
                     */
                    "application/json": components["schemas"]["Introspection"];
                };
            };
            "4XX": components["responses"]["OAuthRefused"];
            "5XX": components["responses"]["OAuthFailed"];
        };
    };
    registerOAuthClient: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_name": "Shop",
                 *       "redirect_uris": [
                 *         "https://shop.example.com/callback"
                 *       ]
                 *     }
                 */
                "application/json": {
                    redirect_uris?: string[];
                    grant_types?: string[];
                    client_type?: string;
                    token_endpoint_auth_method?: string;
                    client_name?: string;
                    client_uri?: string;
                    logo_uri?: string;
                    post_logout_redirect_uris?: string[];
                    scope?: string;
                    application_type?: string;
                    contacts?: string[];
                    policy_uri?: string;
                    tos_uri?: string;
                    initiate_login_uri?: string;
                    default_max_age?: number;
                    default_acr_values?: string[];
                    require_auth_time?: boolean;
                    software_id?: string;
                    software_version?: string;
                    backchannel_logout_uri?: string;
                    backchannel_logout_session_required?: boolean;
                    require_pushed_authorization_requests?: boolean;
                    dpop_bound_access_tokens?: boolean;
                    access_token_typ?: string;
                    authorization_details_types?: string[];
                    response_types?: string[];
                    subject_type?: string;
                    id_token_signed_response_alg?: string;
                    id_token_encrypted_response_alg?: string;
                    userinfo_signed_response_alg?: string;
                    userinfo_encrypted_response_alg?: string;
                    sector_identifier_uri?: string;
                    jwks?: {
                        [key: string]: unknown;
                    };
                    jwks_uri?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "client_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "client_secret": "s3cr3t-of-the-client",
                     *       "client_type": "confidential",
                     *       "redirect_uris": [
                     *         "https://shop.example.com/callback"
                     *       ],
                     *       "token_endpoint_auth_method": "client_secret_basic",
                     *       "grant_types": [
                     *         "authorization_code",
                     *         "refresh_token"
                     *       ],
                     *       "response_types": [
                     *         "code"
                     *       ],
                     *       "client_name": "Shop",
                     *       "client_uri": "https://shop.example.com",
                     *       "logo_uri": "https://shop.example.com/logo.svg",
                     *       "jwks": {},
                     *       "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
                     *       "scopes": [
                     *         "orders:read"
                     *       ],
                     *       "audiences": [
                     *         "https://api.example.com"
                     *       ],
                     *       "plan": "pro",
                     *       "role": "member",
                     *       "limit": {
                     *         "requests_per_unit": 1000,
                     *         "unit": "minute"
                     *       },
                     *       "org_id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "disabled": false,
                     *       "scope": "openid email",
                     *       "default_max_age": 1,
                     *       "require_auth_time": true,
                     *       "require_pushed_authorization_requests": true,
                     *       "dpop_bound_access_tokens": true,
                     *       "backchannel_logout_session_required": true,
                     *       "workload_identities": [
                     *         {
                     *           "issuer": "https://login.example.org",
                     *           "subject": "system:serviceaccount:shop:orders"
                     *         }
                     *       ],
                     *       "access_token_typ": "at+jwt",
                     *       "built_in": false,
                     *       "registration_type": "dynamic",
                     *       "created_at": "2026-01-01T09:30:00.000Z",
                     *       "updated_at": "2026-01-01T09:30:00.000Z",
                     *       "client_id_issued_at": 1,
                     *       "client_secret_expires_at": 1
                     *     }
                     */
                    "application/json": components["schemas"]["RegisteredOAuthClient"];
                };
            };
            "4XX": components["responses"]["OAuthRefused"];
            "5XX": components["responses"]["OAuthFailed"];
        };
    };
    authorizeOAuthClient: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirect to the application, with tokens, a code or an error in the fragment or query; or to the provider. */
            302: {
                headers: {
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    authorizeOAuthClientByForm: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirect to the application, with tokens, a code or an error in the fragment or query; or to the provider. */
            303: {
                headers: {
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    endOAuthSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirect to the application, with tokens, a code or an error in the fragment or query; or to the provider. */
            303: {
                headers: {
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    endOAuthSessionByForm: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirect to the application, with tokens, a code or an error in the fragment or query; or to the provider. */
            303: {
                headers: {
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getOAuthAuthorization: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                authorization_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "authorization_id": "c9f1d2",
                     *       "redirect_uri": "https://shop.example.com/callback",
                     *       "client": {
                     *         "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "name": "Payments",
                     *         "uri": "otpauth://totp/Tollgate:ann@example.com?secret=JBSWY3DPEHPK3PXP",
                     *         "logo_uri": "https://shop.example.com/logo.svg"
                     *       },
                     *       "user": {
                     *         "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *         "email": "ann@example.com"
                     *       },
                     *       "scope": "openid email",
                     *       "authorization_details": [
                     *         {}
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthAuthorization"] | components["schemas"]["OAuthRedirect"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    decideOAuthAuthorization: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                authorization_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "action": "approve"
                 *     }
                 */
                "application/json": {
                    action?: string;
                };
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "redirect_url": "https://shop.example.com/callback?code=c9f1"
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthRedirect"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    listOAuthGrants: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example [
                     *       {
                     *         "client": {
                     *           "id": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *           "name": "Payments",
                     *           "uri": "otpauth://totp/Tollgate:ann@example.com?secret=JBSWY3DPEHPK3PXP",
                     *           "logo_uri": "https://shop.example.com/logo.svg"
                     *         },
                     *         "scopes": [
                     *           "orders:read"
                     *         ],
                     *         "granted_at": "2026-01-01T09:30:00.000Z"
                     *       }
                     *     ]
                     */
                    "application/json": components["schemas"]["OAuthGrant"][];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    revokeOAuthGrant: {
        parameters: {
            query?: {
                client_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getUserInfo: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sub": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "email": "ann@example.com",
                     *       "email_verified": true,
                     *       "phone": "15551234567",
                     *       "phone_verified": true,
                     *       "phone_number_verified": true,
                     *       "name": "Payments",
                     *       "updated_at": 1,
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["UserInfo"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getUserInfoByForm: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sub": "0198f0a1-6c1e-7d3a-9b52-5f0c8e1d2a34",
                     *       "email": "ann@example.com",
                     *       "email_verified": true,
                     *       "phone": "15551234567",
                     *       "phone_verified": true,
                     *       "phone_number_verified": true,
                     *       "name": "Payments",
                     *       "updated_at": 1,
                     *       "user_metadata": {
                     *         "name": "Ann"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["UserInfo"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminImportUsers: {
        parameters: {
            query?: {
                /** @description `true`: check the lines, and import none. */
                dry_run?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "imported": 1,
                     *       "skipped": 1,
                     *       "failed": 1,
                     *       "last_line": 1,
                     *       "errors": [
                     *         {
                     *           "line": 1,
                     *           "code": "123456",
                     *           "message": "ok"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ImportResult"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    adminImportApiKeys: {
        parameters: {
            query?: {
                /** @description `true`: check the lines, and import none. */
                dry_run?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "imported": 1,
                     *       "skipped": 1,
                     *       "failed": 1,
                     *       "last_line": 1,
                     *       "errors": [
                     *         {
                     *           "line": 1,
                     *           "code": "123456",
                     *           "message": "ok"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ImportResult"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
}
