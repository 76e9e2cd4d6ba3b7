-- Up Migration
-- Metadata of OAuth clients (RFC 7591, OpenID Connect Dynamic Client Registration) that GoTrue has no columns for.

alter table oauth_client_settings add column if not exists metadata jsonb not null default '{}';
