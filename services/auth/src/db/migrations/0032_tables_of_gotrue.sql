-- Up Migration
-- The rest of the schema that GoTrue has after its migration 20260625000000, and the list of its
-- migrations, so that it finds nothing to change. Skipped in a schema that GoTrue made.

do $$ begin
  if to_regclass('schema_migrations') is not null or to_regclass('instances') is not null then
    return;
  end if;

  create type oauth_registration_type as enum ('dynamic', 'manual');
  create type oauth_authorization_status as enum ('pending', 'approved', 'denied', 'expired');
  create type oauth_response_type as enum ('code');
  create type oauth_client_type as enum ('public', 'confidential');

  create table instances (
    id uuid primary key,
    uuid uuid,
    raw_base_config text,
    created_at timestamptz,
    updated_at timestamptz
  );

  create table sso_providers (
    id uuid primary key,
    resource_id text constraint "resource_id not empty" check (resource_id = null or char_length(resource_id) > 0),
    created_at timestamptz,
    updated_at timestamptz,
    disabled boolean
  );
  create unique index sso_providers_resource_id_idx on sso_providers (lower(resource_id));
  create index sso_providers_resource_id_pattern_idx on sso_providers (resource_id text_pattern_ops);

  create table sso_domains (
    id uuid primary key,
    sso_provider_id uuid not null references sso_providers (id) on delete cascade,
    domain text not null constraint "domain not empty" check (char_length(domain) > 0),
    created_at timestamptz,
    updated_at timestamptz
  );
  create index sso_domains_sso_provider_id_idx on sso_domains (sso_provider_id);
  create unique index sso_domains_domain_idx on sso_domains (lower(domain));

  create table saml_providers (
    id uuid primary key,
    sso_provider_id uuid not null references sso_providers (id) on delete cascade,
    entity_id text not null unique constraint "entity_id not empty" check (char_length(entity_id) > 0),
    metadata_xml text not null constraint "metadata_xml not empty" check (char_length(metadata_xml) > 0),
    metadata_url text constraint "metadata_url not empty" check (metadata_url = null or char_length(metadata_url) > 0),
    attribute_mapping jsonb,
    created_at timestamptz,
    updated_at timestamptz,
    name_id_format text
  );
  create index saml_providers_sso_provider_id_idx on saml_providers (sso_provider_id);

  create table saml_relay_states (
    id uuid primary key,
    sso_provider_id uuid not null references sso_providers (id) on delete cascade,
    request_id text not null constraint "request_id not empty" check (char_length(request_id) > 0),
    for_email text,
    redirect_to text,
    created_at timestamptz,
    updated_at timestamptz,
    flow_state_id uuid references flow_state (id) on delete cascade
  );
  create index saml_relay_states_sso_provider_id_idx on saml_relay_states (sso_provider_id);
  create index saml_relay_states_for_email_idx on saml_relay_states (for_email);
  create index saml_relay_states_created_at_idx on saml_relay_states (created_at desc);

  create table oauth_clients (
    id uuid primary key,
    client_secret_hash text,
    registration_type oauth_registration_type not null,
    redirect_uris text not null,
    grant_types text not null,
    client_name text constraint oauth_clients_client_name_length check (char_length(client_name) <= 1024),
    client_uri text constraint oauth_clients_client_uri_length check (char_length(client_uri) <= 2048),
    logo_uri text constraint oauth_clients_logo_uri_length check (char_length(logo_uri) <= 2048),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    deleted_at timestamptz,
    client_type oauth_client_type not null default 'confidential',
    token_endpoint_auth_method text not null
      check (token_endpoint_auth_method in ('client_secret_basic', 'client_secret_post', 'none'))
  );
  create index oauth_clients_deleted_at_idx on oauth_clients (deleted_at);

  create table oauth_authorizations (
    id uuid primary key,
    authorization_id text not null unique,
    client_id uuid not null references oauth_clients (id) on delete cascade,
    user_id uuid references users (id) on delete cascade,
    redirect_uri text not null constraint oauth_authorizations_redirect_uri_length check (char_length(redirect_uri) <= 2048),
    scope text not null constraint oauth_authorizations_scope_length check (char_length(scope) <= 4096),
    state text constraint oauth_authorizations_state_length check (char_length(state) <= 4096),
    resource text constraint oauth_authorizations_resource_length check (char_length(resource) <= 2048),
    code_challenge text constraint oauth_authorizations_code_challenge_length check (char_length(code_challenge) <= 128),
    code_challenge_method code_challenge_method,
    response_type oauth_response_type not null default 'code',
    status oauth_authorization_status not null default 'pending',
    authorization_code text unique
      constraint oauth_authorizations_authorization_code_length check (char_length(authorization_code) <= 255),
    created_at timestamptz not null default now(),
    expires_at timestamptz not null default now() + interval '3 minutes',
    approved_at timestamptz,
    nonce text constraint oauth_authorizations_nonce_length check (char_length(nonce) <= 255),
    constraint oauth_authorizations_expires_at_future check (expires_at > created_at)
  );
  create index oauth_auth_pending_exp_idx on oauth_authorizations (expires_at) where status = 'pending';

  create table oauth_consents (
    id uuid primary key,
    user_id uuid not null references users (id) on delete cascade,
    client_id uuid not null references oauth_clients (id) on delete cascade,
    scopes text not null
      constraint oauth_consents_scopes_length check (char_length(scopes) <= 2048)
      constraint oauth_consents_scopes_not_empty check (char_length(trim(scopes)) > 0),
    granted_at timestamptz not null default now(),
    revoked_at timestamptz,
    constraint oauth_consents_revoked_after_granted check (revoked_at is null or revoked_at >= granted_at),
    constraint oauth_consents_user_client_unique unique (user_id, client_id)
  );
  create index oauth_consents_active_client_idx on oauth_consents (client_id) where revoked_at is null;
  create index oauth_consents_active_user_client_idx on oauth_consents (user_id, client_id) where revoked_at is null;
  create index oauth_consents_user_order_idx on oauth_consents (user_id, granted_at desc);

  create table oauth_client_states (
    id uuid primary key,
    provider_type text not null,
    code_verifier text,
    created_at timestamptz not null
  );
  create index idx_oauth_client_states_created_at on oauth_client_states (created_at);

  create table custom_oauth_providers (
    id uuid primary key default gen_random_uuid(),
    provider_type text not null check (provider_type in ('oauth2', 'oidc')),
    identifier text not null unique,
    name text not null,
    client_id text not null,
    client_secret text not null,
    acceptable_client_ids text[] not null default '{}',
    scopes text[] not null default '{}',
    pkce_enabled boolean not null default true,
    attribute_mapping jsonb not null default '{}',
    authorization_params jsonb not null default '{}',
    enabled boolean not null default true,
    email_optional boolean not null default false,
    issuer text,
    discovery_url text,
    skip_nonce_check boolean not null default false,
    cached_discovery jsonb,
    discovery_cached_at timestamptz,
    authorization_url text,
    token_url text,
    userinfo_url text,
    jwks_uri text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    custom_claims_allowlist text[] not null default '{}',
    constraint custom_oauth_providers_identifier_format check (identifier ~ '^[a-z0-9][a-z0-9:-]{0,48}[a-z0-9]$'),
    constraint custom_oauth_providers_name_length check (char_length(name) >= 1 and char_length(name) <= 100),
    constraint custom_oauth_providers_client_id_length check (char_length(client_id) >= 1 and char_length(client_id) <= 512),
    constraint custom_oauth_providers_issuer_length
      check (issuer is null or (char_length(issuer) >= 1 and char_length(issuer) <= 2048)),
    constraint custom_oauth_providers_discovery_url_length check (discovery_url is null or char_length(discovery_url) <= 2048),
    constraint custom_oauth_providers_authorization_url_length
      check (authorization_url is null or char_length(authorization_url) <= 2048),
    constraint custom_oauth_providers_token_url_length check (token_url is null or char_length(token_url) <= 2048),
    constraint custom_oauth_providers_userinfo_url_length check (userinfo_url is null or char_length(userinfo_url) <= 2048),
    constraint custom_oauth_providers_jwks_uri_length check (jwks_uri is null or char_length(jwks_uri) <= 2048),
    constraint custom_oauth_providers_authorization_url_https
      check (authorization_url is null or authorization_url like 'https://%'),
    constraint custom_oauth_providers_token_url_https check (token_url is null or token_url like 'https://%'),
    constraint custom_oauth_providers_userinfo_url_https check (userinfo_url is null or userinfo_url like 'https://%'),
    constraint custom_oauth_providers_jwks_uri_https check (jwks_uri is null or jwks_uri like 'https://%'),
    constraint custom_oauth_providers_oidc_requires_issuer check (provider_type <> 'oidc' or issuer is not null),
    constraint custom_oauth_providers_oidc_issuer_https
      check (provider_type <> 'oidc' or issuer is null or issuer like 'https://%'),
    constraint custom_oauth_providers_oidc_discovery_url_https
      check (provider_type <> 'oidc' or discovery_url is null or discovery_url like 'https://%'),
    constraint custom_oauth_providers_oauth2_requires_endpoints check (
      provider_type <> 'oauth2' or (authorization_url is not null and token_url is not null and userinfo_url is not null))
  );
  create index custom_oauth_providers_identifier_idx on custom_oauth_providers (identifier);
  create index custom_oauth_providers_provider_type_idx on custom_oauth_providers (provider_type);
  create index custom_oauth_providers_enabled_idx on custom_oauth_providers (enabled);
  create index custom_oauth_providers_created_at_idx on custom_oauth_providers (created_at);

  create table webauthn_credentials (
    id uuid primary key default gen_random_uuid(),
    user_id uuid not null references users (id) on delete cascade,
    credential_id bytea not null,
    public_key bytea not null,
    attestation_type text not null default '',
    aaguid uuid,
    sign_count bigint not null default 0,
    transports jsonb not null default '[]',
    backup_eligible boolean not null default false,
    backed_up boolean not null default false,
    friendly_name text not null default '',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    last_used_at timestamptz
  );
  create unique index webauthn_credentials_credential_id_key on webauthn_credentials (credential_id);
  create index webauthn_credentials_user_id_idx on webauthn_credentials (user_id);

  create table webauthn_challenges (
    id uuid primary key default gen_random_uuid(),
    user_id uuid references users (id) on delete cascade,
    challenge_type text not null check (challenge_type in ('signup', 'registration', 'authentication')),
    session_data jsonb not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
  );
  create index webauthn_challenges_user_id_idx on webauthn_challenges (user_id);
  create index webauthn_challenges_expires_at_idx on webauthn_challenges (expires_at);

  alter table sessions
    add constraint sessions_oauth_client_id_fkey foreign key (oauth_client_id) references oauth_clients (id) on delete cascade;
  create index sessions_oauth_client_id_idx on sessions (oauth_client_id);

  create table schema_migrations (version varchar(255) primary key);
  insert into schema_migrations (version) values
    ('00'), ('20210710035447'), ('20210722035447'), ('20210730183235'), ('20210909172000'), ('20210927181326'),
    ('20211122151130'), ('20211124214934'), ('20211202183645'), ('20220114185221'), ('20220114185340'), ('20220224000811'),
    ('20220323170000'), ('20220429102000'), ('20220531120530'), ('20220614074223'), ('20220811173540'), ('20221003041349'),
    ('20221003041400'), ('20221011041400'), ('20221020193600'), ('20221021073300'), ('20221021082433'), ('20221027105023'),
    ('20221114143122'), ('20221114143410'), ('20221125140132'), ('20221208132122'), ('20221215195500'), ('20221215195800'),
    ('20221215195900'), ('20230116124310'), ('20230116124412'), ('20230131181311'), ('20230322519590'), ('20230402418590'),
    ('20230411005111'), ('20230508135423'), ('20230523124323'), ('20230818113222'), ('20230914180801'), ('20231027141322'),
    ('20231114161723'), ('20231117164230'), ('20240115144230'), ('20240214120130'), ('20240306115329'), ('20240314092811'),
    ('20240427152123'), ('20240612123726'), ('20240729123726'), ('20240802193726'), ('20240806073726'), ('20241009103726'),
    ('20250717082212'), ('20250731150234'), ('20250804100000'), ('20250901200500'), ('20250903112500'), ('20250904133000'),
    ('20250925093508'), ('20251007112900'), ('20251104100000'), ('20251111201300'), ('20251201000000'), ('20260115000000'),
    ('20260121000000'), ('20260219120000'), ('20260302000000'), ('20260625000000');
end $$;
