-- Up Migration
-- Tokens that are bound to a key of the client (DPoP, RFC 9449).

-- The thumbprint of the key that the code has to be exchanged with.
alter table oidc_authorizations add column if not exists dpop_jkt text;

-- The key that the refresh tokens of a session are bound to, by its thumbprint.
create table if not exists session_keys (
  session_id uuid primary key references sessions (id) on delete cascade,
  thumbprint text not null
);

-- Proofs that were used. They expire after a minute, and need not outlive a crash.
create unlogged table if not exists dpop_proofs (
  digest text primary key,
  expires_at timestamptz not null
);
create index if not exists dpop_proofs_expires_at_idx on dpop_proofs (expires_at);
