-- Up Migration
-- Rights that clients ask for as JSON objects (authorization_details, RFC 9396).

-- Of the request: the details after the hook, its lines for the user, and whether the consent is remembered.
alter table oidc_authorizations add column if not exists authorization_details jsonb;

-- What the tokens of a session are for.
create table if not exists session_authorization_details (
  session_id uuid primary key references sessions (id) on delete cascade,
  details jsonb not null
);

-- Those that the user has consented to.
alter table oauth_consent_resources add column if not exists authorization_details jsonb not null default '[]';
