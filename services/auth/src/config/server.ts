import { logLevelSynonyms, logLevels } from '@tollgate/kit/logger';
import {
  bool,
  duration,
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

/** The site that users come from, and who may sign up. */
export const coreSettings = {
  mode: oneOf(['production', 'development'], {
    ...svc('MODE'),
    group,
    default: 'production',
    doc: '`development` listens on loopback only, brings its own PostgreSQL, and makes up what must otherwise be set.',
  }),
  developmentFolder: text({
    ...svc('DEVELOPMENT_FOLDER'),
    group,
    default: '.tollgate-auth',
    doc: 'Where development mode keeps its database and its secrets.',
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
    doc: 'Further permitted `redirect_to` URLs, with globs: `*`, `**`, `?`, `[a-z]`, `{a,b}`.',
  }),
  disableSignup: bool({
    ...svc('DISABLE_SIGNUP'),
    group,
    default: false,
    doc: 'Users are created by invitation and by administrators only.',
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
    doc: 'Sign-in by a link or code that is mailed.',
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

/** Where the API is served, and how it logs and stops. */
export const serverSettings = {
  apiHost: textOrDefault({
    ...svc('API_HOST'),
    group: serverGroup,
    default: '0.0.0.0',
    doc: 'Address to listen on. Development mode listens on loopback whatever is set here.',
  }),
  port: port({
    ...bare('PORT', 'API_PORT'),
    group: serverGroup,
    default: 8081,
    doc: 'TCP port; 0 picks a free one.',
  }),
  apiExternalUrl: text({
    ...svcOrBare('API_EXTERNAL_URL'),
    group: serverGroup,
    required: true,
    doc: 'URL under which the outside reaches this server; links in mails begin with it.',
  }),
  apiEndpoint: withoutEffect(
    text({ ...svc('API_ENDPOINT'), group: serverGroup, default: '', doc: 'Multi-instance mode.' }),
  ),
  requestIdHeader: text({
    ...svcOrBare('REQUEST_ID_HEADER'),
    group: serverGroup,
    default: '',
    doc: 'Request header to take the request id from.',
  }),
  maxRequestDurationMs: seconds({
    ...svc('API_MAX_REQUEST_DURATION'),
    group: serverGroup,
    default: '10s',
    min: '1s',
    doc: 'Longest time that a request may take to arrive, and then to be answered.',
  }),
  corsAllowedHeaders: list({
    ...svc('CORS_ALLOWED_HEADERS'),
    group: serverGroup,
    default: [],
    doc: 'Request headers that browsers may send besides the usual ones.',
  }),
  trustedProxies: proxyList({
    ...svc('SECURITY_TRUSTED_PROXIES'),
    group: serverGroup,
    default: [],
    doc: 'Addresses and networks whose `X-Forwarded-For` is believed, such as `10.0.0.0/8,loopback`.',
  }),
  forwardedForEnabled: bool({
    ...svc('SECURITY_SVC_FORWARDED_FOR_ENABLED'),
    aliases: ['GOTRUE_SECURITY_SVC_FORWARDED_FOR_ENABLED', 'GOTRUE_SECURITY_SB_FORWARDED_FOR_ENABLED'],
    group: serverGroup,
    default: false,
    doc: 'Take the address of the client from `Svc-Forwarded-For` (or `Sb-Forwarded-For`); behind trusted proxies only.',
  }),
  shutdownDelayMs: duration({
    ...svc('SHUTDOWN_DELAY'),
    group: serverGroup,
    default: '0s',
    max: longestTimer,
    doc: 'Time between failing the gRPC health check and refusing new requests, so that load balancers notice first.',
  }),
  drainTimeoutMs: duration({
    ...svc('DRAIN_TIMEOUT'),
    group: serverGroup,
    default: '20s',
    max: longestTimer,
    doc: 'Time that requests in flight have to end after SIGTERM before they are cut off.',
  }),
  logLevel: oneOf(logLevels, {
    ...bare('LOG_LEVEL'),
    group: serverGroup,
    default: 'info',
    synonyms: { ...logLevelSynonyms, '': 'info' },
    doc: 'Lowest level that is logged.',
  }),
  logFile: text({
    ...bare('LOG_FILE'),
    group: serverGroup,
    default: '',
    doc: 'File that the log is appended to, in place of standard error.',
  }),
};

const telemetryGroup = 'Telemetry';

/** A switch whose variable other programs use for other values, as `DEBUG=express:*`. */
function sharedSwitch(options: SettingOptions<boolean>): Setting<boolean> {
  const base = bool(options);
  return Object.freeze({ ...base, parse: (value) => base.parse(value) ?? false });
}

/** Traces and metrics. Where traces go is said by the standard variables OTEL_EXPORTER_OTLP_*. */
export const telemetrySettings = {
  tracingEnabled: bool({
    ...svc('TRACING_ENABLED'),
    group: telemetryGroup,
    default: false,
    doc: 'Export spans in OTLP.',
  }),
  tracingExporter: oneOf(['opentelemetry'], {
    ...svc('TRACING_EXPORTER'),
    group: telemetryGroup,
    default: 'opentelemetry',
    doc: 'How.',
  }),
  otlpProtocol: oneOf(['http/protobuf', 'http/json', 'grpc'], {
    ...bare('OTEL_EXPORTER_OTLP_PROTOCOL'),
    group: telemetryGroup,
    default: 'http/protobuf',
    doc: 'Protocol of OTLP; the other OTEL_EXPORTER_OTLP_* variables are read by the exporter itself.',
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
    doc: '`opentelemetry` sends OTLP; `pull` (or `prometheus`) waits for scrapes.',
  }),
  otelExporterPullHost: text({
    ...bareNames('OTEL_EXPORTER_PULL_HOST', 'OTEL_EXPORTER_PROMETHEUS_HOST'),
    group: telemetryGroup,
    default: '0.0.0.0',
    doc: 'Address that scrapers ask. Development mode listens on loopback whatever is set here.',
  }),
  otelExporterPullPort: port({
    ...bareNames('OTEL_EXPORTER_PULL_PORT', 'OTEL_EXPORTER_PROMETHEUS_PORT'),
    group: telemetryGroup,
    default: 9100,
    doc: 'TCP port that scrapers ask, at `/` or `/metrics`.',
  }),
  debug: sharedSwitch({
    ...bare('DEBUG'),
    group: telemetryGroup,
    default: false,
    doc: 'More insight from the telemetry SDK. Other programs use the variable as well: what is no boolean is false.',
  }),
};
