-- Up Migration
-- The tables of GoTrue's migrations 20260824000000 and 20260824000001, which find nothing to change then.

alter type factor_type add value if not exists 'recovery_code';

create table if not exists mfa_recovery_code_sets (
  id uuid primary key,
  user_id uuid not null unique references users (id) on delete cascade,
  mfa_factor_id uuid not null unique references mfa_factors (id) on delete cascade,
  failed_verification_count integer not null default 0 check (failed_verification_count >= 0),
  verification_locked_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table if not exists mfa_recovery_codes (
  id uuid primary key,
  mfa_recovery_code_set_id uuid not null references mfa_recovery_code_sets (id) on delete cascade,
  code_hash text not null,
  consumed_at timestamptz,
  created_at timestamptz not null default now()
);
create index if not exists mfa_recovery_codes_set_id_idx on mfa_recovery_codes (mfa_recovery_code_set_id);
