-- Up Migration
-- Sessions of browsers at hosts of applications behind a gateway. A row begins as a code, which the browser exchanges for a cookie.

create table if not exists browser_sessions (
  id uuid primary key,
  session_id uuid not null references sessions (id) on delete cascade,
  user_id uuid not null,
  host text not null,
  -- Digest of the secret of the browser that asked for the code.
  binding text not null,
  -- A digest. Null: it was presented.
  code text constraint browser_sessions_code_key unique,
  code_expires_at timestamptz not null,
  -- Digest of the cookie. Null: not exchanged.
  digest text constraint browser_sessions_digest_key unique,
  -- Claims as those of an access token.
  claims jsonb not null,
  created_at timestamptz not null,
  used_at timestamptz not null
);

create index if not exists browser_sessions_session on browser_sessions (session_id, host, created_at);
create index if not exists browser_sessions_created on browser_sessions (created_at) where digest is null;
