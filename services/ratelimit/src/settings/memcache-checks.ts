import type { SettingsCheck } from '@tollgate/kit/settings';
import { isSrvName } from '../backends/memcached/find-servers.ts';
import { parseServerAddress } from '../backends/memcached/server-address.ts';
import type { counterSettings } from './decision-settings.ts';
import type { memcacheSettings } from './memcache-settings.ts';

type Check = SettingsCheck<typeof counterSettings & typeof memcacheSettings>;

const serversAreNamed: Check = (s, { nameOf }) =>
  s.backendType === 'memcache' && s.memcacheHostPort.length === 0 && s.memcacheSrv === ''
    ? {
        variable: nameOf('memcacheHostPort'),
        expected: `host:port,host:port, because ${nameOf('backendType')} is memcache and ${nameOf('memcacheSrv')} is not set either`,
      }
    : undefined;

const serversAreNamedOnce: Check = (s, { nameOf, shownOf }) =>
  s.backendType === 'memcache' && s.memcacheHostPort.length > 0 && s.memcacheSrv !== ''
    ? {
        variable: nameOf('memcacheSrv'),
        value: shownOf('memcacheSrv') ?? '',
        expected: `nothing, because ${nameOf('memcacheHostPort')} names the servers already`,
      }
    : undefined;

const serversAreAddresses: Check = (s, { nameOf }) => {
  const bad = s.memcacheHostPort.find((server) => parseServerAddress(server) === undefined);
  return bad === undefined || s.backendType !== 'memcache'
    ? undefined
    : {
        variable: nameOf('memcacheHostPort'),
        value: JSON.stringify(bad),
        expected: 'host:port,host:port; an IPv6 address as [::1]:11211',
      };
};

const srvIsOne: Check = (s, { nameOf, shownOf }) =>
  s.backendType === 'memcache' && s.memcacheSrv !== '' && !isSrvName(s.memcacheSrv)
    ? {
        variable: nameOf('memcacheSrv'),
        value: shownOf('memcacheSrv') ?? '',
        expected: '_service._proto.name, such as _memcache._tcp.memcached.default.svc.cluster.local',
      }
    : undefined;

const clientPair: Check = (s, { nameOf }) =>
  (s.memcacheTlsClientCert === '') === (s.memcacheTlsClientKey === '')
    ? undefined
    : {
        variable: nameOf(s.memcacheTlsClientCert === '' ? 'memcacheTlsClientCert' : 'memcacheTlsClientKey'),
        expected: 'a PEM file: certificate and key belong together',
      };

/** What must fit together among the settings of memcached. */
export const memcacheChecks: readonly Check[] = [
  serversAreNamed,
  serversAreNamedOnce,
  serversAreAddresses,
  srvIsOne,
  clientPair,
];
