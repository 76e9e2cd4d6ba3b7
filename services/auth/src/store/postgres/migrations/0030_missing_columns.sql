-- Up Migration
-- What is used here and versions of GoTrue from before October 2025 did not have. They had all the rest from March 2024 on.
-- Servers of those versions read every column of sessions: they fail to refresh where it has more columns than they know.

alter table sessions
  add column if not exists refresh_token_hmac_key text,
  add column if not exists refresh_token_counter bigint;

alter table mfa_factors
  add column if not exists phone text,
  add column if not exists last_challenged_at timestamptz;
alter table mfa_challenges add column if not exists otp_code text;
create unique index if not exists unique_phone_factor_per_user on mfa_factors (user_id, phone);

-- Period of 30 seconds since 1970 whose code a TOTP factor accepted last: that one and those before are refused from then on.
create table if not exists tollgate_totp_periods (
  factor_id uuid primary key references mfa_factors (id) on delete cascade,
  period integer not null
);
