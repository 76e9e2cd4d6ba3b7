import { bool, duration, int, list, longestTimer, type SettingsCheck, text } from '@tollgate/kit/settings';
import { isSrvName, parseServerAddress } from '../backends/memcached/addresses.ts';
import type { counterSettings } from './ratelimit.ts';

const group = 'memcached';
const named = (name: string) => ({ env: `MCACHE_${name}`, aliases: [`MEMCACHE_${name}`], group });

export const memcacheSettings = {
  memcacheHostPort: list({
    ...named('HOST_PORT'),
    default: [],
    doc: 'The memcached servers, `host:port,host:port`. All limiters need the same servers in the same order, because the position in the list decides which server holds a counter. Exclusive with MCACHE_SRV.',
  }),
  memcacheSrv: text({
    ...named('SRV'),
    default: '',
    doc: 'SRV record of the servers, `_service._proto.name`, as a fully qualified name.',
  }),
  memcacheSrvRefreshMs: duration({
    ...named('SRV_REFRESH'),
    default: '0',
    max: longestTimer,
    clamp: true,
    bareSeconds: true,
    doc: 'Interval at which the SRV record is resolved again; 0 disables it. When resolving fails, the current servers are kept.',
  }),
  memcacheMaxIdleConnections: int({
    ...named('MAX_IDLE_CONNS'),
    default: 2,
    min: 0,
    max: 1000,
    clamp: true,
    doc: 'Connections to each server; 0 means 2. Requests are batched: all that arrive within a tick of the event loop share one connection.',
  }),
  memcacheTimeoutMs: duration({
    env: 'MCACHE_TIMEOUT',
    group,
    default: '500ms',
    min: '1ms',
    max: longestTimer,
    clamp: true,
    zeroAs: '500ms',
    doc: 'Timeout of each exchange with a server. Requests that are not counted by then are allowed.',
  }),
  memcacheTls: bool({ ...named('TLS'), default: false, doc: 'Connect with TLS.' }),
  memcacheTlsClientCert: text({
    ...named('TLS_CLIENT_CERT'),
    default: '',
    doc: 'PEM file with a client certificate. Like the next two, it is reloaded when it changes, and used for new connections.',
  }),
  memcacheTlsClientKey: text({
    ...named('TLS_CLIENT_KEY'),
    default: '',
    doc: 'PEM file with its private key.',
  }),
  memcacheTlsCacert: text({
    ...named('TLS_CACERT'),
    default: '',
    doc: 'PEM file with the certificate authorities of the servers; empty for those of Node.js.',
  }),
  memcacheTlsSkipHostnameVerification: bool({
    ...named('TLS_SKIP_HOSTNAME_VERIFICATION'),
    default: false,
    doc: 'Skip the verification of the host name; the certificate chain is still verified.',
  }),
};

type Check = SettingsCheck<typeof counterSettings & typeof memcacheSettings>;

const serversAreNamed: Check = (s, { variableName }) =>
  s.backendType === 'memcache' && s.memcacheHostPort.length === 0 && s.memcacheSrv === ''
    ? {
        variable: variableName('memcacheHostPort'),
        expected: `host:port,host:port, because ${variableName('backendType')} is memcache and ${variableName('memcacheSrv')} is not set either`,
      }
    : undefined;

const serversAreNamedOnce: Check = (s, { variableName, shownValue }) =>
  s.backendType === 'memcache' && s.memcacheHostPort.length > 0 && s.memcacheSrv !== ''
    ? {
        variable: variableName('memcacheSrv'),
        value: shownValue('memcacheSrv') ?? '',
        expected: `nothing, because ${variableName('memcacheHostPort')} names the servers already`,
      }
    : undefined;

const serversAreAddresses: Check = (s, { variableName }) => {
  const bad = s.memcacheHostPort.find((server) => parseServerAddress(server) === undefined);
  return bad === undefined || s.backendType !== 'memcache'
    ? undefined
    : {
        variable: variableName('memcacheHostPort'),
        value: JSON.stringify(bad),
        expected: 'host:port,host:port; an IPv6 address as [::1]:11211',
      };
};

const srvIsOne: Check = (s, { variableName, shownValue }) =>
  s.backendType === 'memcache' && s.memcacheSrv !== '' && !isSrvName(s.memcacheSrv)
    ? {
        variable: variableName('memcacheSrv'),
        value: shownValue('memcacheSrv') ?? '',
        expected: '_service._proto.name, such as _memcache._tcp.memcached.default.svc.cluster.local',
      }
    : undefined;

const clientPair: Check = (s, { variableName }) =>
  (s.memcacheTlsClientCert === '') === (s.memcacheTlsClientKey === '')
    ? undefined
    : {
        variable: variableName(
          s.memcacheTlsClientCert === '' ? 'memcacheTlsClientCert' : 'memcacheTlsClientKey',
        ),
        expected: 'a PEM file: certificate and key belong together',
      };

export const memcacheChecks: readonly Check[] = [
  serversAreNamed,
  serversAreNamedOnce,
  serversAreAddresses,
  srvIsOne,
  clientPair,
];
