-- Up Migration
-- What OpenID Connect adds to requests for access, sessions and consents of OAuth clients. The tables of GoTrue keep their columns.

-- By the id of `oauth_authorizations`, without a foreign key: a schema of GoTrue before 2025 has no such table.
create table if not exists oidc_authorizations (
  request_id uuid primary key,
  -- Parameters of the request.
  prompt text,
  max_age integer,
  response_mode text,
  -- The user of `id_token_hint`.
  hinted_user_id uuid,
  -- How the user who approved the request had authenticated; null before.
  authenticated_at timestamptz,
  aal text,
  methods text[],
  stored_at timestamptz not null
);
create index if not exists oidc_authorizations_stored_at_idx on oidc_authorizations (stored_at);

-- The same for the session that the code was exchanged for: each refresh issues an ID token that says it again.
create table if not exists session_authentications (
  session_id uuid primary key references sessions (id) on delete cascade,
  authenticated_at timestamptz not null,
  aal text not null,
  methods text[] not null
);

-- The scopes that a user has consented to for a resource (RFC 8707), and for none (''). A consent without rows is one of GoTrue, and for no resource.
create table if not exists oauth_consent_resources (
  consent_id uuid not null,
  resource text not null,
  -- Separated by spaces.
  scopes text not null,
  primary key (consent_id, resource)
);

-- A consent that was revoked, by either server, does not come back with the next one.
create or replace function forget_consent_resources() returns trigger language plpgsql as $f$
begin
  delete from oauth_consent_resources where consent_id = old.id;
  return null;
end $f$;

-- The table is missing in a schema that GoTrue made before 2025.
do $$ begin
  if to_regclass('oauth_consents') is null then
    return;
  end if;
  drop trigger if exists consent_revoked on oauth_consents;
  create trigger consent_revoked after update of revoked_at on oauth_consents for each row
    when (new.revoked_at is not null) execute function forget_consent_resources();
  drop trigger if exists consent_deleted on oauth_consents;
  create trigger consent_deleted after delete on oauth_consents for each row execute function forget_consent_resources();
end $$;
