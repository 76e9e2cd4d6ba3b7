import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { type Memcached, startMemcached } from '@tollgate/testkit/memcached';
import { sendTcp } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { resolveServers } from '../../../src/stores/memcached/servers.ts';
import { take } from '../../support/counts.ts';
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts';
import { connect } from '../../support/grpc-client.ts';
import { memcachedFromSettings } from '../../support/memcached-from-settings.ts';
import { startApp } from '../../support/start-app.ts';
import { makeHit } from '../counter-store-contract.ts';

const srv = '_memcache._tcp.example.test';
const servers = await Promise.all([startMemcached(), startMemcached()]);
// In the order that an SRV record gives them: sorted as text.
servers.sort((a, b) => (String(a.port) < String(b.port) ? -1 : 1));
const [first, second] = servers;
const certificates = makeCertificates();
t.teardown(async () => {
  certificates.remove();
  await Promise.all(servers.map((server) => server.stop()));
});
t.beforeEach(() => Promise.all(servers.map(({ host, port }) => sendTcp('flush_all\r\n', { host, port }))));

const targetOf = ({ port }: Memcached) => ({ host: 'localhost', port });

async function holds({ host, port }: Memcached, key: string): Promise<boolean> {
  return (await sendTcp(`get ${key}\r\n`, { host, port })).startsWith('VALUE');
}

type LogLines = Awaited<ReturnType<typeof memcachedFromSettings>>['logLines'];

const says = (logLines: LogLines, text: RegExp) =>
  logLines.some((line) => text.test(String(line['@message'])));

function fromSrv(t: Test, dns: DnsServer, env: Readonly<Record<string, string>> = {}) {
  return memcachedFromSettings(t, { MCACHE_SRV: srv, ...env }, (name) => dns.resolver.resolveSrv(name));
}

t.test('servers of an SRV record are sorted as text with the dot at the end of the name', async (t) => {
  const dns = await startDnsServer(t, [
    { host: 'mc1.test', port: 11_211 },
    { host: 'mc.test', port: 9 },
    { host: 'mc', port: 11_211 },
    { host: 'mc.test', port: 11_211 },
  ]);
  t.same(
    await resolveServers(srv, (name) => dns.resolver.resolveSrv(name)),
    ['mc.:11211', 'mc.test.:11211', 'mc.test.:9', 'mc1.test.:11211'].map((text) => text.replace('.:', ':')),
  );
});

t.test('a missing or empty SRV record is an error that names it', async (t) => {
  const dns = await startDnsServer(t);
  const { store } = await fromSrv(t, dns);
  await t.rejects(store.start(), {
    message: `the SRV record ${srv} (MCACHE_SRV) could not be resolved: querySrv ENOTFOUND ${srv}`,
  });
  dns.answer = [{ host: '', port: 0 }];
  await t.rejects((await fromSrv(t, dns)).store.start(), { message: /names no server/ });
});

t.test('servers follow the SRV record; when resolving fails they are kept', async (t) => {
  const dns = await startDnsServer(t, [targetOf(second), targetOf(first)]);
  const { store, logLines, uncounted } = await fromSrv(t, dns, { MCACHE_SRV_REFRESH: '20ms' });
  await store.start();
  // By their CRC-32, key-0 lives in the first server and key-4 in the second.
  await take(store, [makeHit('key-0'), makeHit('key-4')]);
  t.same([await holds(first, 'key-0'), await holds(second, 'key-4')], [true, true]);

  dns.answer = [targetOf(second)];
  await awaitUntil(() => says(logLines, /^memcached servers changed$/), {
    what: 'the change to be noticed',
  });
  await take(store, [makeHit('key-0')]);
  t.equal(await holds(second, 'key-0'), true);

  dns.answer = undefined;
  await awaitUntil(() => says(logLines, /could not resolve the memcached servers again/), {
    what: 'a log entry for the failure',
  });
  t.same(await take(store, [makeHit('key-0')]), [2]);
  t.equal(uncounted(), 0);
});

t.test('without MCACHE_SRV_REFRESH the record is resolved once', async (t) => {
  const dns = await startDnsServer(t, [targetOf(first)]);
  const { store } = await fromSrv(t, dns);
  await store.start();
  t.same(await take(store, [makeHit('a')]), [1]);
  t.equal(dns.requests(), 1);
});

t.test('TLS: chain and host name are verified, and the client certificate is sent', async (t) => {
  const { ca, server: pair, client, issue } = certificates;
  const other = issue({ name: 'other', subjectAltNames: ['DNS:other.test'] });
  const getTlsFiles = ({ certFile, keyFile }: typeof pair) => ({ certFile, keyFile, caFile: ca.certFile });
  const [named, misnamed] = await Promise.all([
    startMemcached({ tls: getTlsFiles(pair) }),
    startMemcached({ tls: getTlsFiles(other) }),
  ]);
  t.teardown(() => Promise.all([named.stop(), misnamed.stop()]));
  const own = { MCACHE_TLS_CLIENT_CERT: client.certFile, MCACHE_TLS_CLIENT_KEY: client.keyFile };
  const trusting = { MCACHE_TLS: 'true', MCACHE_TLS_CACERT: ca.certFile, ...own };

  async function counts(server: Memcached, env: Readonly<Record<string, string>>): Promise<boolean> {
    const made = await memcachedFromSettings(t, { MCACHE_HOST_PORT: `localhost:${server.port}`, ...env });
    await made.store.start();
    await take(made.store, [makeHit('a')]);
    return made.uncounted() === 0;
  }
  t.equal(await counts(named, trusting), true);
  const { stats } = await memcachedFromSettings(t, { MCACHE_HOST_PORT: 'localhost:1', ...trusting });
  t.match(
    [...stats.gauges()].find(({ name }) => name === 'tollgate_tls_certificate_expiry_timestamp_seconds'),
    { tags: { certificate: 'memcached_client' }, value: /^\d{10}$/ },
  );
  t.equal(await counts(misnamed, trusting), false, 'another name');
  t.equal(await counts(misnamed, { ...trusting, MCACHE_TLS_SKIP_HOSTNAME_VERIFICATION: 'true' }), true);
  t.equal(await counts(named, { MCACHE_TLS: 'true', ...own }), false, 'an unknown CA');
  const skipping = { MCACHE_TLS: 'true', MCACHE_TLS_SKIP_HOSTNAME_VERIFICATION: 'true', ...own };
  t.equal(await counts(named, skipping), false, 'the chain is verified all the same');
  t.equal(await counts(first, trusting), false, 'a server without TLS');
});

t.test('TLS: an invalid file is a start error that names it', async (t) => {
  const env = { MCACHE_HOST_PORT: first.address, MCACHE_TLS: 'true' };
  await t.rejects(memcachedFromSettings(t, { ...env, MCACHE_TLS_CACERT: '/nowhere/ca.crt' }), {
    message: /MCACHE_TLS_.*\/nowhere\/ca\.crt/,
  });
});

const rules = {
  'shop.yaml': `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2 }
`,
};

t.test('the service counts in memcached', async (t) => {
  const { ports } = await startApp(t, {
    rules,
    env: {
      BACKEND_TYPE: 'memcache',
      MCACHE_HOST_PORT: `${first.address},${second.address}`,
      MCACHE_TIMEOUT: '20s',
    },
    nowMs: () => 1_700_000_000_000,
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const request = {
    domain: 'shop',
    descriptors: [{ entries: [{ key: 'user', value: 'a name with blanks' }] }],
  };
  const answers = [];
  for (let i = 0; i < 3; i += 1) {
    answers.push(await client.shouldRateLimit(request));
  }
  t.same(
    answers.map(({ overallCode, statuses }) => [overallCode, statuses[0]?.limitRemaining]),
    [
      [1, 1],
      [1, 0],
      [2, 0],
    ],
  );
});
