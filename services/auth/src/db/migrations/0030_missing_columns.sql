-- Up Migration
-- Columns that Tollgate uses and GoTrue of March 2024 to September 2025 does not have. Such a GoTrue
-- reads all columns of sessions, and fails to refresh where there are more than it knows.

alter table sessions
  add column if not exists refresh_token_hmac_key text,
  add column if not exists refresh_token_counter bigint;

alter table mfa_factors
  add column if not exists phone text,
  add column if not exists last_challenged_at timestamptz;
alter table mfa_challenges add column if not exists otp_code text;
create unique index if not exists unique_phone_factor_per_user on mfa_factors (user_id, phone);

-- Number of the 30 seconds since 1970 whose code a TOTP factor accepted last. That code and earlier
-- ones are refused from then on.
create table if not exists tollgate_totp_periods (
  factor_id uuid primary key references mfa_factors (id) on delete cascade,
  period integer not null
);
