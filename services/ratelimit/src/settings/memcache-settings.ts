import { bool, duration, int, list, longestTimer, text } from '@tollgate/kit/settings';

const group = 'memcached';
const named = (name: string) => ({ env: `MCACHE_${name}`, aliases: [`MEMCACHE_${name}`], group });

/** How the memcached servers are reached, with BACKEND_TYPE=memcache. */
export const memcacheSettings = {
  memcacheHostPort: list({
    ...named('HOST_PORT'),
    default: [],
    doc: 'The memcached servers, `host:port,host:port`. Every limiter needs the same ones in the same order: the place in the list decides which server holds a counter. Either this or MCACHE_SRV.',
  }),
  memcacheSrv: text({
    ...named('SRV'),
    default: '',
    doc: 'SRV record that names the servers instead, `_service._proto.name`; the name in full, no search domain is put behind it.',
  }),
  memcacheSrvRefreshMs: duration({
    ...named('SRV_REFRESH'),
    default: '0',
    max: longestTimer,
    clamp: true,
    bareSeconds: true,
    doc: 'How often the SRV record is looked up again; 0 never. While that fails the servers stay as they were.',
  }),
  memcacheMaxIdleConnections: int({
    ...named('MAX_IDLE_CONNS'),
    default: 2,
    min: 0,
    max: 1000,
    clamp: true,
    doc: 'Connections to each server; 0 means 2. Requests share them: all that arrive within a tick travel together over one.',
  }),
  memcacheTimeoutMs: duration({
    env: 'MCACHE_TIMEOUT',
    group,
    default: '500ms',
    min: '1ms',
    max: longestTimer,
    clamp: true,
    zeroAs: '500ms',
    doc: 'Bound on each exchange with a server; what is not counted by then is let through.',
  }),
  memcacheTls: bool({ ...named('TLS'), default: false, doc: 'Connect with TLS.' }),
  memcacheTlsClientCert: text({
    ...named('TLS_CLIENT_CERT'),
    default: '',
    doc: 'PEM file with a client certificate. Read again when it changes, like the next two; connections made from then on use it.',
  }),
  memcacheTlsClientKey: text({
    ...named('TLS_CLIENT_KEY'),
    default: '',
    doc: 'PEM file with its private key.',
  }),
  memcacheTlsCacert: text({
    ...named('TLS_CACERT'),
    default: '',
    doc: 'PEM file with the authorities that vouch for the servers; empty for those Node.js knows.',
  }),
  memcacheTlsSkipHostnameVerification: bool({
    ...named('TLS_SKIP_HOSTNAME_VERIFICATION'),
    default: false,
    doc: 'Do not compare the host name with the certificate; its chain is verified all the same.',
  }),
};
