-- Up Migration
-- Clients that publish their metadata: the URL that is their client_id, and the time until which the stored copy is used. Null for other clients.

alter table oauth_client_settings add column if not exists document_url text;
alter table oauth_client_settings add column if not exists document_expires_at timestamptz;
