import { logLevelSynonyms, logLevels } from '@tollgate/kit/logger';
import { bool, duration, list, longestTimer, oneOf, port, text } from '@tollgate/kit/settings';
import { seconds, textOrDefault } from './builders.ts';
import { proxyList } from './proxy-list.ts';
import { bare, svc, svcOrBare } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

const group = 'API server';

/** Where the API is served, and how it logs and stops. */
export const serverSettings = {
  apiHost: textOrDefault({
    ...svc('API_HOST'),
    group,
    default: '0.0.0.0',
    doc: 'Address to listen on. Development mode listens on loopback whatever is set here.',
  }),
  port: port({ ...bare('PORT', 'API_PORT'), group, default: 8081, doc: 'TCP port; 0 picks a free one.' }),
  apiExternalUrl: text({
    ...svcOrBare('API_EXTERNAL_URL'),
    group,
    required: true,
    doc: 'URL under which the outside reaches this server; links in mails begin with it.',
  }),
  apiEndpoint: withoutEffect(
    text({ ...svc('API_ENDPOINT'), group, default: '', doc: 'Multi-instance mode.' }),
  ),
  requestIdHeader: text({
    ...svcOrBare('REQUEST_ID_HEADER'),
    group,
    default: '',
    doc: 'Request header to take the request id from.',
  }),
  maxRequestDurationMs: seconds({
    ...svc('API_MAX_REQUEST_DURATION'),
    group,
    default: '10s',
    min: '1s',
    doc: 'Longest time that a request may take to arrive, and then to be answered.',
  }),
  corsAllowedHeaders: list({
    ...svc('CORS_ALLOWED_HEADERS'),
    group,
    default: [],
    doc: 'Request headers that browsers may send besides the usual ones.',
  }),
  trustedProxies: proxyList({
    ...svc('SECURITY_TRUSTED_PROXIES'),
    group,
    default: [],
    doc: 'Addresses and networks whose `X-Forwarded-For` is believed, such as `10.0.0.0/8,loopback`.',
  }),
  forwardedForEnabled: bool({
    ...svc('SECURITY_SVC_FORWARDED_FOR_ENABLED'),
    aliases: ['GOTRUE_SECURITY_SVC_FORWARDED_FOR_ENABLED', 'GOTRUE_SECURITY_SB_FORWARDED_FOR_ENABLED'],
    group,
    default: false,
    doc: 'Take the address of the client from `Svc-Forwarded-For` (or `Sb-Forwarded-For`); behind trusted proxies only.',
  }),
  shutdownDelayMs: duration({
    ...svc('SHUTDOWN_DELAY'),
    group,
    default: '0s',
    max: longestTimer,
    doc: 'Time between failing the gRPC health check and refusing new requests, so that load balancers notice first.',
  }),
  drainTimeoutMs: duration({
    ...svc('DRAIN_TIMEOUT'),
    group,
    default: '20s',
    max: longestTimer,
    doc: 'Time that requests in flight have to end after SIGTERM before they are cut off.',
  }),
  logLevel: oneOf(logLevels, {
    ...bare('LOG_LEVEL'),
    group,
    default: 'info',
    synonyms: { ...logLevelSynonyms, '': 'info' },
    doc: 'Lowest level that is logged.',
  }),
  logFile: text({
    ...bare('LOG_FILE'),
    group,
    default: '',
    doc: 'File that the log is appended to, in place of standard error.',
  }),
};
