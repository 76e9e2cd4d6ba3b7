-- Up Migration

create table if not exists mfa_factors (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  friendly_name text,
  factor_type factor_type not null,
  status factor_status not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  secret text,
  phone text,
  last_challenged_at timestamptz unique,
  web_authn_credential jsonb,
  web_authn_aaguid uuid,
  last_webauthn_challenge_data jsonb
);
create unique index if not exists mfa_factors_user_friendly_name_unique
  on mfa_factors (friendly_name, user_id) where trim(friendly_name) <> '';
create index if not exists mfa_factors_user_id_idx on mfa_factors (user_id);
create index if not exists factor_id_created_at_idx on mfa_factors (user_id, created_at);

create table if not exists mfa_challenges (
  id uuid primary key,
  factor_id uuid not null constraint mfa_challenges_auth_factor_id_fkey references mfa_factors (id) on delete cascade,
  created_at timestamptz not null,
  verified_at timestamptz,
  ip_address inet not null,
  otp_code text,
  web_authn_session_data jsonb
);
create index if not exists mfa_challenge_created_at_idx on mfa_challenges (created_at desc);

-- GoTrue from before April 2024 keeps one-time tokens in columns of users only.
do $$ begin
  if to_regclass('one_time_tokens') is not null then
    return;
  end if;
  create table one_time_tokens (
    id uuid primary key,
    user_id uuid not null references users (id) on delete cascade,
    token_type one_time_token_type not null,
    token_hash text not null check (char_length(token_hash) > 0),
    relates_to text not null,
    created_at timestamp without time zone not null default now(),
    updated_at timestamp without time zone not null default now()
  );
  insert into one_time_tokens (id, user_id, token_type, token_hash, relates_to, created_at, updated_at)
  select gen_random_uuid(), u.id, t.type::one_time_token_type, t.hash, t.relates_to,
    t.sent_at at time zone 'utc', t.sent_at at time zone 'utc'
  from users u cross join lateral (values
    ('confirmation_token', confirmation_token, coalesce(email, phone), confirmation_sent_at),
    ('recovery_token', recovery_token, coalesce(email, phone), recovery_sent_at),
    ('email_change_token_new', email_change_token_new, email_change, email_change_sent_at),
    ('email_change_token_current', email_change_token_current, email, email_change_sent_at),
    ('phone_change_token', phone_change_token, phone_change, phone_change_sent_at),
    ('reauthentication_token', reauthentication_token, coalesce(email, phone), reauthentication_sent_at)
  ) as t (type, hash, relates_to, sent_at)
  -- No code is good for longer.
  where t.hash <> '' and t.relates_to <> '' and t.sent_at > now() - interval '30 days';
end $$;
create index if not exists one_time_tokens_token_hash_hash_idx on one_time_tokens using hash (token_hash);
create index if not exists one_time_tokens_relates_to_hash_idx on one_time_tokens using hash (relates_to);
create unique index if not exists one_time_tokens_user_id_token_type_key on one_time_tokens (user_id, token_type);

create table if not exists flow_state (
  id uuid primary key,
  user_id uuid,
  auth_code text,
  code_challenge_method code_challenge_method,
  code_challenge text,
  provider_type text not null,
  provider_access_token text,
  provider_refresh_token text,
  created_at timestamptz,
  updated_at timestamptz,
  authentication_method text not null,
  auth_code_issued_at timestamptz,
  invite_token text,
  referrer text,
  oauth_client_state_id uuid,
  linking_target_id uuid,
  email_optional boolean not null default false
);
create index if not exists idx_auth_code on flow_state (auth_code);
create index if not exists idx_user_id_auth_method on flow_state (user_id, authentication_method);
create index if not exists flow_state_created_at_idx on flow_state (created_at desc);

-- What has been used of a quota, for all replicas together. It need not outlive a crash.
create unlogged table if not exists rate_limits (
  limiter text not null,
  key text not null,
  -- Of a window: events in it. Of a bucket: events that have not been refilled yet.
  used double precision not null,
  -- Of a window: its start. Of a bucket: when `used` was computed.
  since timestamptz not null,
  primary key (limiter, key)
);
create index if not exists rate_limits_since_idx on rate_limits (since);
