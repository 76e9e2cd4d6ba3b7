import { bool, type Setting, type SettingSchema, text } from '@tollgate/kit/settings';
import { providerNames } from '../identity-providers/registry.ts';
import { svc } from './builders.ts';

/** GoTrue settings without effect, by name without prefix, and what applies instead. */
export const ignoredSettings: Readonly<Record<string, string>> = {
  API_ENABLE_DEBUG_ROUTES: 'There are no debug routes.',
  AUDIT_LOG_DISABLE_POSTGRES: 'Audit entries are always kept in the database, and logged.',
  COOKIE_DOMAIN: 'The only cookie binds a sign-in with a provider to its browser, for 10 minutes.',
  COOKIE_DURATION: 'The only cookie binds a sign-in with a provider to its browser, for 10 minutes.',
  COOKIE_KEY: 'The only cookie binds a sign-in with a provider to its browser, for 10 minutes.',
  DB_ADVISOR_ENABLED: 'There is no advisor.',
  DB_ADVISOR_OBSERVATION_INTERVAL: 'There is no advisor.',
  DB_ADVISOR_SAMPLING_INTERVAL: 'There is no advisor.',
  DB_AUTOMIGRATE: 'The schema is migrated at every start.',
  DB_CONN_MAX_IDLE_TIME: 'Connections stay open.',
  DB_CONN_MAX_LIFETIME: 'Connections are replaced after 30 to 60 minutes.',
  DB_CONN_PERCENTAGE: 'DB_MAX_POOL_SIZE limits the connections.',
  DB_HEALTH_CHECK_PERIOD: 'Connections are not checked while idle.',
  DB_MAX_IDLE_POOL_SIZE: 'DB_MAX_POOL_SIZE limits the connections.',
  DB_MIGRATIONS_PATH: 'The migrations are part of the server.',
  EXPERIMENTAL_ENABLE_OTT_AS_SOURCE_OF_TRUTH: 'The source of codes is not configurable.',
  EXPERIMENTAL_ONE_TIME_TOKEN_EXPIRES_AT_WRITE_ENABLED: 'The expiry of a code is computed when it is used.',
  EXPERIMENTAL_PROVIDERS_WITH_OWN_LINKING_DOMAIN: 'All providers link by verified email.',
  EXPERIMENTAL_PROVIDER_LINKING_DOMAINS: 'All providers link by verified email.',
  EXPERIMENTAL_SCIM_ENABLED: 'SCIM is not supported.',
  EXTERNAL_FLOW_STATE_EXPIRY_DURATION:
    'Sign-in with a provider takes up to 10 minutes, and its code is valid for 5.',
  EXTERNAL_OIDC_PROVIDER_CACHE_TTL: 'Metadata of providers are cached for an hour.',
  EXTERNAL_REDIRECTURL: 'EXTERNAL_<PROVIDER>_REDIRECT_URI sets the URL, for each provider.',
  INDEX_WORKER_ENSURE_USER_SEARCH_INDEXES_EXIST: 'No indexes are created while serving.',
  INDEX_WORKER_MAX_USERS_THRESHOLD: 'No indexes are created while serving.',
  LOG_DISABLE_COLORS: 'The log is JSON, without colors.',
  LOG_FIELDS: 'Log lines have no further fields.',
  LOG_QUOTE_EMPTY_FIELDS: 'The log is JSON.',
  LOG_SQL: 'Statements are not logged.',
  LOG_TSFORMAT: 'Times are in RFC 3339 format.',
  MAILER_EMAIL_BACKGROUND_SENDING:
    'Requests wait for the mail server, unless SECURITY_UNIFORM_ANSWERS is on.',
  MAILER_TEMPLATE_MAX_AGE: 'Templates are fetched again after 10 minutes.',
  MAILER_TEMPLATE_MAX_SIZE: 'Templates are limited to 1 MiB.',
  MAILER_TEMPLATE_RELOADING_ENABLED: 'Templates are fetched on demand.',
  MAILER_TEMPLATE_RELOADING_MAX_IDLE: 'Templates are fetched on demand.',
  MAILER_TEMPLATE_RETRY_INTERVAL: 'A template that failed is fetched again after 10 seconds.',
  MAILER_TEST_OTP: 'Test codes are supported for phones only.',
  MAILER_TEST_OTP_VALID_UNTIL: 'Test codes are supported for phones only.',
  MAX_VERIFIED_FACTORS: 'MFA_MAX_VERIFIED_FACTORS limits the factors.',
  MFA_ENABLED: 'MFA is always enabled.',
  OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'Administrators create clients.',
  OAUTH_SERVER_AUTHORIZATION_PATH: 'The OAuth server has only the grant client_credentials.',
  OAUTH_SERVER_AUTHORIZATION_TTL: 'The OAuth server has only the grant client_credentials.',
  OAUTH_SERVER_DEFAULT_SCOPE: 'Tokens of clients have the scopes of the client.',
  PASSWORD_HIBP_BLOOM_ENABLED: 'Responses of Pwned Passwords are not cached.',
  PASSWORD_HIBP_BLOOM_FALSE_POSITIVES: 'Responses of Pwned Passwords are not cached.',
  PASSWORD_HIBP_BLOOM_ITEMS: 'Responses of Pwned Passwords are not cached.',
  PROFILER_ADDR: 'There is no profiler.',
  PROFILER_ENABLED: 'There is no profiler.',
  RATE_LIMIT_O_AUTH_DYNAMIC_CLIENT_REGISTER: 'Administrators create clients.',
  RELOADING_GRACE_PERIOD_INTERVAL: 'The folder of -d is reloaded as soon as it changes.',
  RELOADING_NOTIFY_ENABLED: 'The folder of -d is always watched.',
  RELOADING_POLLERENABLED: 'The folder of -d is always watched.',
  RELOADING_POLLER_INTERVAL: 'The folder of -d is always watched.',
  RELOADING_SIGNAL_ENABLED: 'The folder of -d is always watched.',
  RELOADING_SIGNAL_NUMBER: 'The folder of -d is always watched.',
  SESSION_KEY: 'The only cookie binds a sign-in with a provider to its browser, for 10 minutes.',
  SMTP_LOGGING_ENABLED: 'Deliveries are not logged.',
  TRACING_HEADERS: 'OTEL_EXPORTER_OTLP_HEADERS sets the headers.',
  TRACING_HOST: 'OTEL_EXPORTER_OTLP_ENDPOINT sets the collector.',
  TRACING_PORT: 'OTEL_EXPORTER_OTLP_ENDPOINT sets the collector.',
  TRACING_SERVICE_NAME: 'OTEL_SERVICE_NAME sets the service name.',
  TRACING_TAGS: 'OTEL_RESOURCE_ATTRIBUTES sets the attributes.',
};

/** Providers of GoTrue that are not supported. */
const otherProviders: readonly string[] = ['vercel_marketplace'];

const providerParts = [
  'API_URL',
  'CLIENT_ID',
  'EMAIL_OPTIONAL',
  'MAXIMUM_VALIDITY_DURATION',
  'REDIRECT_URI',
  'SECRET',
  'SKIP_NONCE_CHECK',
  'URL',
];

/** Details of unsupported features, for which only the switch is reported. */
export const unservedDetails: ReadonlySet<string> = new Set([
  'MAILER_EMAIL_VALIDATION_BLOCKED_MX',
  'MAILER_EMAIL_VALIDATION_SERVICE_HEADERS',
  'MAILER_EMAIL_VALIDATION_SERVICE_URL',
  'RATE_LIMIT_SSO',
  'SAML_ALLOW_ENCRYPTED_ASSERTIONS',
  'SAML_EXTERNAL_URL',
  'SAML_PRIVATE_KEY',
  'SAML_PRIVATE_KEY_NEXT',
  'SAML_RATE_LIMIT_ASSERTION',
  'SAML_RELAY_STATE_VALIDITY_PERIOD',
  ...[...providerNames, ...otherProviders].flatMap((provider) =>
    providerParts.map((part) => `EXTERNAL_${provider.toUpperCase()}_${part}`),
  ),
]);

export const providerSwitches: ReadonlySet<string> = new Set(
  otherProviders.map((provider) => `EXTERNAL_${provider.toUpperCase()}_ENABLED`),
);

/** A setting of a GoTrue feature that is not supported. */
export type NotServed<T> = Setting<T> & { readonly isServed: false };

const switchedOff: SettingSchema = { type: 'boolean', enum: [false] };

interface NotServedOptions {
  readonly group: string;
  /** A noun phrase. */
  readonly feature: string;
}

/**
 * A switch that must be off. `true` is a startup error, because ignoring it could disable a
 * protection that operators rely on.
 */
function notServed(name: string, { group, feature }: NotServedOptions): NotServed<boolean> {
  const base = bool({ ...svc(name), group, default: false, doc: `Not supported yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `false: ${feature} is not supported yet`,
    schema: switchedOff,
    parse: (value) => (base.parse(value) === false ? false : undefined),
    isServed: false,
  });
}

/** A restriction that must be empty, for the same reason. */
function notServedText(name: string, { group, feature }: NotServedOptions): NotServed<string> {
  const base = text({ ...svc(name), group, default: '', doc: `Not supported yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `an empty value: ${feature} is not supported yet`,
    parse: (value) => (value.trim() === '' ? '' : undefined),
    isServed: false,
  });
}

const group = 'Not supported yet';

/** Switches of unsupported features. Enabling one is a startup error. */
export const unservedSettings = {
  samlEnabled: notServed('SAML_ENABLED', { group, feature: 'SAML single sign-on' }),
  emailValidationExtended: notServed('MAILER_EMAIL_VALIDATION_EXTENDED', {
    group,
    feature: 'extended email validation',
  }),
  emailAuthorizedAddresses: notServedText('EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES', {
    group,
    feature: 'a list of allowed email recipients',
  }),
};
