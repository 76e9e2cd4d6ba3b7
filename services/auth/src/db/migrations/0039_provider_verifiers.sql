-- Up Migration
-- A table of GoTrue since 2026, for a schema that an earlier GoTrue made: PKCE verifiers of sign-ins at providers.

create table if not exists oauth_client_states (
  id uuid primary key,
  provider_type text not null,
  code_verifier text,
  created_at timestamptz not null
);
create index if not exists idx_oauth_client_states_created_at on oauth_client_states (created_at);
