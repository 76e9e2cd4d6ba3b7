-- Up Migration

-- Number of the 30 seconds since 1970 whose code was accepted last: that one and those before are refused from then on.
alter table mfa_factors add column if not exists last_totp_period integer;
