import { defaultBufferBytes, minBufferBytes } from '@tollgate/grpc-server/client-buffers';
import { logLevelSynonyms, logLevels } from '@tollgate/kit/logger';
import {
  bool,
  duration,
  int,
  list,
  longestTimer,
  oneOf,
  port,
  type Setting,
  type SettingOptions,
  text,
} from '@tollgate/kit/settings';
import {
  bare,
  bareNames,
  globList,
  proxyList,
  seconds,
  svc,
  svcOrBare,
  textOrDefault,
  withoutEffect,
} from './builders.ts';

const group = 'Site and sign-up';

export const coreSettings = {
  mode: oneOf(['production', 'development'], {
    ...svc('MODE'),
    group,
    default: 'production',
    doc: '`development` listens on loopback only, starts its own PostgreSQL, and has defaults for all required settings.',
  }),
  developmentFolder: text({
    ...svc('DEVELOPMENT_FOLDER'),
    group,
    default: '.tollgate-auth',
    doc: 'Folder for database and secrets of development mode.',
  }),
  siteUrl: text({
    ...svc('SITE_URL'),
    group,
    required: true,
    doc: 'Base URL of the site. Any URL of the same origin is an allowed `redirect_to`.',
  }),
  uriAllowList: globList({
    ...svc('URI_ALLOW_LIST'),
    group,
    default: [],
    doc: 'Further allowed `redirect_to` URLs, with globs: `*`, `**`, `?`, `[a-z]`, `{a,b}`. Loopback addresses (`http://127.0.0.1:*`) are always allowed.',
  }),
  disableSignup: bool({
    ...svc('DISABLE_SIGNUP'),
    group,
    default: false,
    doc: 'Only administrators can create and invite users.',
  }),
  externalEmailEnabled: bool({
    ...svc('EXTERNAL_EMAIL_ENABLED'),
    group,
    default: true,
    doc: 'Sign-up and sign-in by email.',
  }),
  externalEmailMagicLinkEnabled: bool({
    ...svc('EXTERNAL_EMAIL_MAGIC_LINK_ENABLED'),
    group,
    default: true,
    doc: 'Sign-in by a link or code in an email.',
  }),
  externalPhoneEnabled: bool({
    ...svc('EXTERNAL_PHONE_ENABLED'),
    group,
    default: false,
    doc: 'Sign-up and sign-in by phone.',
  }),
  externalAnonymousUsersEnabled: bool({
    ...svc('EXTERNAL_ANONYMOUS_USERS_ENABLED'),
    group,
    default: false,
    doc: 'Sign-up without email and phone.',
  }),
  operatorToken: withoutEffect(
    text({ ...svc('OPERATOR_TOKEN'), group, default: '', secret: true, doc: 'Multi-instance mode.' }),
  ),
};

const serverGroup = 'API server';

export const serverSettings = {
  apiHost: textOrDefault({
    ...svc('API_HOST'),
    group: serverGroup,
    default: '0.0.0.0',
    doc: 'Address to listen on. Ignored in development mode, which listens on loopback.',
  }),
  port: port({
    ...bare('PORT', 'API_PORT'),
    group: serverGroup,
    default: 8081,
    doc: 'TCP port. 0 selects a free port.',
  }),
  apiExternalUrl: text({
    ...svcOrBare('API_EXTERNAL_URL'),
    group: serverGroup,
    required: true,
    doc: 'Public URL of this server, used for links in emails.',
  }),
  apiEndpoint: withoutEffect(
    text({ ...svc('API_ENDPOINT'), group: serverGroup, default: '', doc: 'Multi-instance mode.' }),
  ),
  requestIdHeader: text({
    ...svcOrBare('REQUEST_ID_HEADER'),
    group: serverGroup,
    default: '',
    doc: 'Request header with the request id.',
  }),
  maxRequestDurationMs: seconds({
    ...svc('API_MAX_REQUEST_DURATION'),
    group: serverGroup,
    default: '10s',
    min: '1s',
    doc: 'Time limit for receiving a request, and then for processing it.',
  }),
  clientBufferMaxBytes: int({
    ...svc('CLIENT_BUFFER_MAX_BYTES'),
    group: serverGroup,
    default: defaultBufferBytes,
    min: minBufferBytes,
    doc: 'Maximum memory for requests that have not arrived completely and for replies that clients do not read, of the API and ext_authz together. One client address may use half of it, one connection an eighth. Beyond it, the largest holders get RESOURCE_EXHAUSTED (gRPC) or 503 (HTTP).',
  }),
  corsAllowedHeaders: list({
    ...svc('CORS_ALLOWED_HEADERS'),
    group: serverGroup,
    default: [],
    doc: 'Further allowed request headers for CORS.',
  }),
  cursorPaginationEnabled: bool({
    ...svc('EXPERIMENTAL_CURSOR_PAGINATION_ENABLED'),
    group: serverGroup,
    default: false,
    doc: '`GET /admin/users` without `page` and `per_page` lists users by cursor. With `cursor` or `limit` it always does.',
  }),
  trustedProxies: proxyList({
    ...svc('SECURITY_TRUSTED_PROXIES'),
    group: serverGroup,
    default: [],
    doc: 'Addresses and networks whose `X-Forwarded-For` is trusted, such as `10.64.0.0/16,loopback`. Only proxies that append to the header or replace it.',
  }),
  forwardedForEnabled: bool({
    ...svc('SECURITY_SVC_FORWARDED_FOR_ENABLED'),
    aliases: ['GOTRUE_SECURITY_SVC_FORWARDED_FOR_ENABLED', 'GOTRUE_SECURITY_SB_FORWARDED_FOR_ENABLED'],
    group: serverGroup,
    default: false,
    doc: 'Read the client address from `Svc-Forwarded-For` (or `Sb-Forwarded-For`). Use behind trusted proxies only.',
  }),
  shutdownDelayMs: duration({
    ...svc('SHUTDOWN_DELAY'),
    group: serverGroup,
    default: '0s',
    max: longestTimer,
    doc: 'Delay between failing the gRPC health check and rejecting new requests, so that load balancers can react.',
  }),
  drainTimeoutMs: duration({
    ...svc('DRAIN_TIMEOUT'),
    group: serverGroup,
    default: '20s',
    max: longestTimer,
    doc: 'Grace period for in-flight requests after SIGTERM.',
  }),
  logLevel: oneOf(logLevels, {
    ...bare('LOG_LEVEL'),
    group: serverGroup,
    default: 'info',
    synonyms: { ...logLevelSynonyms, '': 'info' },
    doc: 'Minimum log level.',
  }),
  logFile: text({
    ...bare('LOG_FILE'),
    group: serverGroup,
    default: '',
    doc: 'Log file. Lines are appended. Empty: standard error.',
  }),
};

const telemetryGroup = 'Telemetry';

/** Other programs use the variable for other values, such as `DEBUG=express:*`. */
function sharedSwitch(options: SettingOptions<boolean>): Setting<boolean> {
  const base = bool(options);
  return Object.freeze({ ...base, parse: (value) => base.parse(value) ?? false });
}

export const telemetrySettings = {
  tracingEnabled: bool({
    ...svc('TRACING_ENABLED'),
    group: telemetryGroup,
    default: false,
    doc: 'Export spans with OTLP.',
  }),
  tracingExporter: oneOf(['opentelemetry'], {
    ...svc('TRACING_EXPORTER'),
    group: telemetryGroup,
    default: 'opentelemetry',
    doc: 'Exporter.',
  }),
  otlpProtocol: oneOf(['http/protobuf', 'http/json', 'grpc'], {
    ...bare('OTEL_EXPORTER_OTLP_PROTOCOL'),
    group: telemetryGroup,
    default: 'http/protobuf',
    doc: 'OTLP protocol. The exporter reads the other OTEL_EXPORTER_OTLP_* variables itself.',
  }),
  otelServiceName: text({
    ...bare('OTEL_SERVICE_NAME'),
    group: telemetryGroup,
    default: 'auth',
    doc: '`service.name`.',
  }),
  metricsEnabled: bool({
    ...svc('METRICS_ENABLED'),
    group: telemetryGroup,
    default: false,
    doc: 'Export metrics.',
  }),
  metricsExporter: oneOf(['opentelemetry', 'pull', 'prometheus'], {
    ...svc('METRICS_EXPORTER'),
    group: telemetryGroup,
    default: 'opentelemetry',
    doc: '`opentelemetry` sends OTLP. `pull` (or `prometheus`) serves metrics for scraping.',
  }),
  otelExporterPullHost: text({
    ...bareNames('OTEL_EXPORTER_PULL_HOST', 'OTEL_EXPORTER_PROMETHEUS_HOST'),
    group: telemetryGroup,
    default: '0.0.0.0',
    doc: 'Address of the metrics server. Ignored in development mode, which listens on loopback.',
  }),
  otelExporterPullPort: port({
    ...bareNames('OTEL_EXPORTER_PULL_PORT', 'OTEL_EXPORTER_PROMETHEUS_PORT'),
    group: telemetryGroup,
    default: 9100,
    doc: 'TCP port of the metrics server, with the paths `/` and `/metrics`.',
  }),
  debug: sharedSwitch({
    ...bare('DEBUG'),
    group: telemetryGroup,
    default: false,
    doc: 'Log messages of the telemetry SDK. Other programs use the variable, too: values that are not booleans mean false.',
  }),
};
