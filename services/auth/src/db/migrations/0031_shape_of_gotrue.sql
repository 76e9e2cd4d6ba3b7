-- Up Migration
-- Brings databases that earlier versions of Tollgate made, or added to, into the shape of GoTrue.
-- Changes nothing elsewhere.

do $$
declare
  name text[];
begin
  foreach name slice 1 in array array[
    ['identities', 'identities_provider_id_provider_key', 'identities_provider_id_provider_unique'],
    ['sessions', 'sessions_scopes_check', 'sessions_scopes_length'],
    ['refresh_tokens', 'refresh_tokens_token_key', 'refresh_tokens_token_unique'],
    ['mfa_amr_claims', 'mfa_amr_claims_pkey', 'amr_id_pk'],
    ['mfa_challenges', 'mfa_challenges_factor_id_fkey', 'mfa_challenges_auth_factor_id_fkey']
  ] loop
    if exists (select from pg_constraint where conrelid = to_regclass(name[1]) and conname = name[2])
      and not exists (select from pg_constraint where conrelid = to_regclass(name[1]) and conname = name[3]) then
      execute format('alter table %I rename constraint %I to %I', name[1], name[2], name[3]);
    end if;
  end loop;
end $$;

-- Only where something changes: the lock of an alter table waits for all who use the table.
do $$
declare
  name text[];
begin
  if exists (select from pg_attribute
    where attrelid = 'users'::regclass and attname = 'confirmation_token' and atthasdef) then
    alter table users
      alter column confirmation_token drop default,
      alter column recovery_token drop default,
      alter column email_change_token_new drop default,
      alter column email_change drop default,
      alter column phone set default null::varchar,
      alter column phone_change set default ''::varchar;
  end if;
  foreach name slice 1 in array array[['audit_log_entries', 'id'], ['mfa_amr_claims', 'id']] loop
    if exists (select from pg_attribute
      where attrelid = name[1]::regclass and attname = name[2] and atthasdef) then
      execute format('alter table %I alter column %I drop default', name[1], name[2]);
    end if;
  end loop;
end $$;

drop index if exists users_created_at_idx, users_anonymous_created_at_idx, audit_log_entries_created_at_idx,
  sessions_created_at_idx, sessions_factor_id_idx, mfa_challenges_factor_id_idx, one_time_tokens_created_at_idx;

-- Indexes that 0001 to 0003 did not make at first.
create index if not exists audit_logs_instance_id_idx on audit_log_entries (instance_id);
create index if not exists mfa_factors_user_id_idx on mfa_factors (user_id);
create index if not exists refresh_tokens_instance_id_idx on refresh_tokens (instance_id);
create unique index if not exists confirmation_token_idx
  on users (confirmation_token) where confirmation_token !~ '^[0-9 ]*$';
create unique index if not exists recovery_token_idx
  on users (recovery_token) where recovery_token !~ '^[0-9 ]*$';
create unique index if not exists email_change_token_current_idx
  on users (email_change_token_current) where email_change_token_current !~ '^[0-9 ]*$';
create unique index if not exists email_change_token_new_idx
  on users (email_change_token_new) where email_change_token_new !~ '^[0-9 ]*$';
create unique index if not exists reauthentication_token_idx
  on users (reauthentication_token) where reauthentication_token !~ '^[0-9 ]*$';

do $$ begin
  if exists (select from pg_attribute
    where attrelid = 'mfa_factors'::regclass and attname = 'last_totp_period' and not attisdropped) then
    insert into tollgate_totp_periods (factor_id, period)
      select id, last_totp_period from mfa_factors where last_totp_period is not null on conflict do nothing;
    alter table mfa_factors drop column last_totp_period;
  end if;
  if not exists (select from pg_constraint
    where conrelid = 'mfa_factors'::regclass and conname = 'mfa_factors_last_challenged_at_key') then
    update mfa_factors f set last_challenged_at = null
      where exists (select from mfa_factors g where g.last_challenged_at = f.last_challenged_at and g.id > f.id);
    alter table mfa_factors add constraint mfa_factors_last_challenged_at_key unique (last_challenged_at);
  end if;
end $$;

-- GoTrue cannot read rows with a null in one of these columns.
update users set
    instance_id = coalesce(instance_id, '00000000-0000-0000-0000-000000000000'),
    confirmation_token = coalesce(confirmation_token, ''),
    recovery_token = coalesce(recovery_token, ''),
    email_change_token_new = coalesce(email_change_token_new, ''),
    email_change_token_current = coalesce(email_change_token_current, ''),
    email_change = coalesce(email_change, ''),
    phone_change = coalesce(phone_change, ''),
    phone_change_token = coalesce(phone_change_token, ''),
    reauthentication_token = coalesce(reauthentication_token, ''),
    email_change_confirm_status = coalesce(email_change_confirm_status, 0)
  where num_nulls(instance_id, confirmation_token, recovery_token, email_change_token_new, email_change_token_current, email_change,
    phone_change, phone_change_token, reauthentication_token, email_change_confirm_status) > 0;
update audit_log_entries set instance_id = '00000000-0000-0000-0000-000000000000' where instance_id is null;
update flow_state set
    auth_code = coalesce(auth_code, gen_random_uuid()::text),
    provider_access_token = coalesce(provider_access_token, ''),
    provider_refresh_token = coalesce(provider_refresh_token, '')
  where num_nulls(auth_code, provider_access_token, provider_refresh_token) > 0;
