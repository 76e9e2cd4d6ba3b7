-- Up Migration

create table if not exists sessions (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  created_at timestamptz,
  updated_at timestamptz,
  factor_id uuid,
  aal aal_level,
  not_after timestamptz,
  refreshed_at timestamp without time zone,
  user_agent text,
  ip inet,
  tag text,
  oauth_client_id uuid,
  refresh_token_hmac_key text,
  refresh_token_counter bigint,
  scopes text,
  constraint sessions_scopes_length check (char_length(scopes) <= 4096)
);
create index if not exists sessions_user_id_idx on sessions (user_id);
create index if not exists user_id_created_at_idx on sessions (user_id, created_at);
create index if not exists sessions_not_after_idx on sessions (not_after desc);

create table if not exists refresh_tokens (
  instance_id uuid,
  id bigserial primary key,
  token varchar(255) constraint refresh_tokens_token_unique unique,
  user_id varchar(255),
  revoked boolean,
  created_at timestamptz,
  updated_at timestamptz,
  parent varchar(255),
  session_id uuid references sessions (id) on delete cascade
);
create index if not exists refresh_tokens_instance_id_idx on refresh_tokens (instance_id);
create index if not exists refresh_tokens_parent_idx on refresh_tokens (parent);
create index if not exists refresh_tokens_session_id_revoked_idx on refresh_tokens (session_id, revoked);
create index if not exists refresh_tokens_updated_at_idx on refresh_tokens (updated_at desc);
create index if not exists refresh_tokens_instance_id_user_id_idx on refresh_tokens (instance_id, user_id);

create table if not exists mfa_amr_claims (
  session_id uuid not null references sessions (id) on delete cascade,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  authentication_method text not null,
  id uuid constraint amr_id_pk primary key,
  constraint mfa_amr_claims_session_id_authentication_method_pkey unique (session_id, authentication_method)
);
