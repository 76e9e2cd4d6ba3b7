import { formatSettingProblems } from '@tollgate/kit/settings';
import t from 'tap';
import { getSourceName, readSettings, type Settings, toAdsListenOptions } from '../../src/config/settings.ts';

function parseEnv(env: Record<string, string>): Settings {
  const read = readSettings(env);
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  return read.settings;
}

function getProblems(env: Record<string, string>): readonly string[] {
  const read = readSettings(env);
  return read.ok ? [] : read.problems.map(({ variable, expected }) => `${variable}: ${expected}`);
}

t.test('source is the cluster in a pod and a folder elsewhere, unless set', async (t) => {
  t.equal(getSourceName(parseEnv({ XDS_FOLDER: '/m' })), 'folder');
  t.equal(getSourceName(parseEnv({ KUBERNETES_SERVICE_HOST: '10.0.0.1' })), 'kubernetes');
  t.equal(getSourceName(parseEnv({ XDS_SOURCE: 'kubernetes' })), 'kubernetes');
  const inPod = { XDS_SOURCE: 'folder', XDS_FOLDER: '/m', KUBERNETES_SERVICE_HOST: '10.0.0.1' };
  t.equal(getSourceName(parseEnv(inPod)), 'folder');
});

t.test('folder source requires a folder', async (t) => {
  t.match(getProblems({}), [/^XDS_FOLDER: a directory of manifests, because XDS_SOURCE is auto/]);
  t.match(getProblems({ XDS_SOURCE: 'folder', KUBERNETES_SERVICE_HOST: 'x' }), [
    /because XDS_SOURCE is folder/,
  ]);
});

t.test('TLS files are required together', async (t) => {
  const env = { XDS_FOLDER: '/m' };
  t.match(getProblems({ ...env, XDS_GRPC_TLS_CERT: '/c' }), [/^XDS_GRPC_TLS_KEY: a PEM file/]);
  t.match(getProblems({ ...env, XDS_GRPC_TLS_KEY: '/k' }), [/^XDS_GRPC_TLS_CERT: a PEM file/]);
  t.match(getProblems({ ...env, XDS_GRPC_CLIENT_CACERT: '/ca' }), [
    /^XDS_GRPC_TLS_CERT: .*XDS_GRPC_CLIENT_CACERT/,
  ]);
  t.match(getProblems({ ...env, XDS_GRPC_CLIENT_SAN: 'a.b' }), [
    /^XDS_GRPC_CLIENT_CACERT: .*XDS_GRPC_CLIENT_SAN/,
  ]);
});

t.test('Lease times that allow two holders are refused', async (t) => {
  const env = { XDS_FOLDER: '/m' };
  const expected = [
    /^XDS_LEASE_RENEW_DEADLINE: more than XDS_LEASE_RETRY_PERIOD and less than XDS_LEASE_DURATION/,
  ];
  t.match(getProblems({ ...env, XDS_LEASE_DURATION: '4s' }), expected);
  t.match(getProblems({ ...env, XDS_LEASE_RETRY_PERIOD: '4s' }), expected);
  t.strictSame(getProblems({ ...env, XDS_LEASE_DURATION: '5s', XDS_LEASE_RETRY_PERIOD: '3s' }), []);
});

t.test('allowed hosts are hosts of namespaces', async (t) => {
  const hosts = 'shop=api.example.com, *.shop.example.com ,web=*';
  const env = { XDS_FOLDER: '/m', XDS_ALLOWED_HOSTS: hosts };
  t.match(parseEnv(env), { allowedHosts: ['shop=api.example.com', '*.shop.example.com', 'web=*'] });
  const read = readSettings({ ...env, XDS_ALLOWED_HOSTS: 'shop=http://a.test' });
  t.match(read, { ok: false, problems: [{ variable: 'XDS_ALLOWED_HOSTS', value: 'shop=http://a.test' }] });
});

t.test('default ports are the ports that limiters and probes expect', async (t) => {
  t.match(parseEnv({ XDS_FOLDER: '/m' }), {
    grpcPort: 18_000,
    adminPort: 8090,
    debounceMs: 5,
    allowEmpty: true,
    namespaces: [],
  });
});

t.test('last valid versions of a folder are stored outside of it', async (t) => {
  const folder = { XDS_FOLDER: '/m/rules' };
  t.equal(parseEnv({ ...folder, XDS_DATA_FOLDER: '/m/data' }).dataFolder, '/m/data');
  t.match(getProblems({ ...folder, XDS_DATA_FOLDER: '/m/rules/data/' }), [
    /XDS_DATA_FOLDER.*outside of XDS_FOLDER/,
  ]);
  t.match(getProblems({ XDS_SOURCE: 'kubernetes', XDS_DATA_FOLDER: '/data' }), [
    /XDS_DATA_FOLDER.*in the objects/,
  ]);
});

t.test('connection settings apply to the ADS server', async (t) => {
  const settings = parseEnv({
    XDS_FOLDER: '/m',
    XDS_GRPC_HOST: '::',
    XDS_GRPC_PLAINTEXT: 'true',
    XDS_GRPC_MAX_STREAMS_PER_PEER: '7',
    XDS_GRPC_PORT: '19000',
    XDS_GRPC_KEEPALIVE_TIME: '11s',
    XDS_GRPC_KEEPALIVE_TIMEOUT: '2s',
    XDS_GRPC_MAX_CONNECTION_AGE: '5m',
    XDS_GRPC_MAX_CONNECTION_AGE_GRACE: '3s',
  });
  t.strictSame(toAdsListenOptions(settings), {
    address: '[::]:19000',
    keepaliveTimeMs: 11_000,
    keepaliveTimeoutMs: 2_000,
    maxConnectionAgeMs: 300_000,
    maxConnectionAgeGraceMs: 3_000,
    maxStreamsPerPeer: 7,
  });
});

t.test('with mutual TLS, 1,000 limiters of one address can connect', async (t) => {
  const most = (env: Record<string, string>) => toAdsListenOptions(parseEnv(env)).maxStreamsPerPeer ?? 0;
  const tls = { XDS_FOLDER: '/m', XDS_GRPC_TLS_CERT: '/c', XDS_GRPC_TLS_KEY: '/k' };
  t.equal(most(tls), 100);
  t.ok(most({ ...tls, XDS_GRPC_CLIENT_CACERT: '/ca' }) >= 1_000);
  const ownCa = { XDS_SOURCE: 'kubernetes', XDS_GRPC_OWN_CA: 'true', XDS_GRPC_SERVER_NAMES: 'xds' };
  t.ok(most(ownCa) >= 1_000);
  t.equal(most({ ...ownCa, XDS_GRPC_MAX_STREAMS_PER_VERIFIED_PEER: '7' }), 7);
});

t.test('without TLS, ADS is served on loopback only unless plaintext is set', async (t) => {
  const address = (env: Record<string, string>) => toAdsListenOptions(parseEnv(env)).address;
  const folder = { XDS_FOLDER: '/m' };
  t.equal(address(folder), '127.0.0.1:18000');
  t.equal(address({ ...folder, XDS_GRPC_HOST: 'localhost' }), 'localhost:18000');
  t.equal(address({ ...folder, XDS_GRPC_PLAINTEXT: 'true' }), '0.0.0.0:18000');
  t.equal(address({ ...folder, XDS_GRPC_TLS_CERT: '/c', XDS_GRPC_TLS_KEY: '/k' }), '0.0.0.0:18000');
  t.match(getProblems({ ...folder, XDS_GRPC_HOST: '0.0.0.0' }), [
    /XDS_GRPC_HOST: 127\.0\.0\.1, because TLS is off/,
  ]);
});

t.test('credentials of administrators need a network that encrypts', async (t) => {
  const keys = { XDS_ADMIN_KEYS_URL: 'http://auth:8081', XDS_ADMIN_KEYS_TOKEN: 'tgk_verifier' };
  const env = { XDS_FOLDER: '/m', ...keys };
  t.match(getProblems(env), [
    /XDS_ADMIN_HOST: 127\.0\.0\.1, because XDS_ADMIN_KEYS_URL is set.*XDS_ADMIN_PLAINTEXT/,
  ]);
  t.equal(parseEnv({ ...env, XDS_ADMIN_HOST: '127.0.0.1' }).adminKeysUrl, 'http://auth:8081');
  t.equal(parseEnv({ ...env, XDS_ADMIN_PLAINTEXT: 'true' }).adminHost, '0.0.0.0');
  t.match(getProblems({ ...env, XDS_ADMIN_PLAINTEXT: 'true', XDS_ADMIN_KEYS_TOKEN: '' }), [
    /XDS_ADMIN_KEYS_TOKEN: .*belong together/,
  ]);
});

t.test('admission webhook has the certificate of the ADS server, which it requires', async (t) => {
  const env = { XDS_SOURCE: 'kubernetes', XDS_ADMISSION_ENABLED: 'true' };
  t.match(getProblems(env), [/XDS_ADMISSION_ENABLED.*XDS_GRPC_OWN_CA=true or XDS_GRPC_TLS_CERT/]);
  const files = { ...env, XDS_GRPC_TLS_CERT: '/c', XDS_GRPC_TLS_KEY: '/k' };
  t.equal(parseEnv(files).admissionEnabled, true);
  t.equal(parseEnv({ ...env, XDS_GRPC_OWN_CA: 'true', XDS_GRPC_SERVER_NAMES: 'xds' }).admissionEnabled, true);
});

t.test('own authority requires a cluster and names, and excludes other certificates', async (t) => {
  const cluster = { XDS_SOURCE: 'kubernetes', XDS_GRPC_OWN_CA: 'true' };
  const named = { ...cluster, XDS_GRPC_SERVER_NAMES: 'xds.tollgate.svc' };
  t.match(parseEnv({ ...named, XDS_GRPC_CLIENT_SECRETS: 'shop/ads-client' }), {
    certificateSecret: 'tollgate-xds',
    clientSecrets: ['shop/ads-client'],
  });
  t.equal(toAdsListenOptions(parseEnv(named)).address, '0.0.0.0:18000');
  t.match(getProblems(cluster), [/XDS_GRPC_SERVER_NAMES.*DNS names/]);
  t.match(getProblems({ ...named, XDS_SOURCE: 'folder', XDS_FOLDER: '/m' }), [/XDS_GRPC_OWN_CA/]);
  t.match(getProblems({ ...named, XDS_GRPC_PLAINTEXT: 'true' }), [/mutually exclusive/]);
  t.match(getProblems({ ...named, XDS_GRPC_TLS_CERT: '/c', XDS_GRPC_TLS_KEY: '/k' }), [/mutually exclusive/]);
  t.match(getProblems({ ...named, XDS_GRPC_CLIENT_SECRETS: 'ads-client' }), [/namespace\/name/]);
});
