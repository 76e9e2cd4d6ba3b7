import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Health } from '@tollgate/kit/health';
import { createLogger, type Logger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { type RedisTls, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { readSettings } from '../../../src/config/settings.ts';
import { StatsRegistry } from '../../../src/metrics/registry.ts';
import type { CounterStore } from '../../../src/stores/counter-store.ts';
import { RedisConnection } from '../../../src/stores/redis/connection.ts';
import { counterStores } from '../../../src/stores/registry.ts';
import { take } from '../../support/counts.ts';
import { makeHit } from '../counter-store-contract.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);

function loggerTo(log: string[]): Logger {
  return createLogger({
    level: 'trace',
    format: 'json',
    destination: { write: (line) => void log.push(line) },
  });
}

/** The store as the environment describes it; closed when the test ends. */
async function createStore(
  t: Test,
  env: Readonly<Record<string, string>>,
  log: string[] = [],
): Promise<CounterStore> {
  const read = readSettings({ KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_TIMEOUT: '20s', ...env });
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  const createStore = await counterStores.redis.load();
  const store = await createStore(read.settings, {
    nowMs: Date.now,
    nowSeconds: () => 1_000_000,
    random: () => 0.5,
    health: new Health(),
    stats: new StatsRegistry(),
    logger: loggerTo(log),
  });
  t.teardown(() => store.close());
  return store;
}

/** Counts once, through a store that has started. */
async function count(t: Test, env: Readonly<Record<string, string>>): Promise<number | undefined> {
  const store = await createStore(t, env);
  await store.start();
  const [counted] = await take(store, [makeHit('key', 1)]);
  return counted;
}

/** A start that cannot succeed is given up soon. */
const impatient = { KVSTORE_STARTUP_MAX_ELAPSED_TIME: '300ms', KVSTORE_STARTUP_INITIAL_INTERVAL: '20ms' };

function getTlsFiles({ ca, server }: Certificates): RedisTls {
  return { certFile: server.certFile, keyFile: server.keyFile, caFile: ca.certFile };
}

const noClientCertificate = ['--tls-auth-clients', 'no'];

t.test('a password of either setting is sent', async (t) => {
  const redis = await startRedis({ password: 'p@ss:word' });
  t.teardown(redis.stop);
  t.equal(await count(t, { KVSTORE_URL: redis.address, KVSTORE_AUTH: ':p@ss:word' }), 1);
  t.equal(await count(t, { KVSTORE_URL: `redis://:p%40ss%3Aword@${redis.address}` }), 2);
  t.equal(await count(t, { REDIS_URL: redis.address, REDIS_AUTH: 'default:p@ss:word' }), 3);
  await t.rejects(count(t, { ...impatient, KVSTORE_URL: redis.address, KVSTORE_AUTH: 'wrong' }));
  await t.rejects(count(t, { ...impatient, KVSTORE_URL: redis.address }));
});

t.test('a refused login is logged without the password', async (t) => {
  const redis = await startRedis({ password: 'right' });
  t.teardown(redis.stop);
  const log: string[] = [];
  const env = { ...impatient, KVSTORE_URL: redis.address, KVSTORE_AUTH: 'not-the-password' };
  const failsToStart = async (): Promise<boolean> => {
    const store = await createStore(t, env, log);
    const failure = await store.start().catch((error: unknown) => error);
    t.match(failure, { message: /300ms/ });
    // As the service does with a start that fails.
    loggerTo(log).fatal({ err: failure }, 'not started');
    return /WRONGPASS/.test(log.join(''));
  };
  // A busy machine may need more than one: Redis has to answer in that time.
  await awaitUntil(failsToStart, { what: 'the reason in the log' });
  t.notMatch(log.join(''), /not-the-password/);
});

t.test('without an address the error names the setting', async (t) => {
  const log: string[] = [];
  const store = await createStore(t, { ...impatient, KVSTORE_STARTUP_MAX_ELAPSED_TIME: '5s' }, log);
  const starting = store.start();
  await awaitUntil(() => log.length > 0, { what: 'the first attempt' });
  t.match(log[0], /ratelimit\.sock[\s\S]*REDIS_URL or KVSTORE_URL is not set, and this is its default/);
  await store.close();
  await t.rejects(starting);

  const other = await createStore(t, { ...impatient, KVSTORE_STARTUP_MAX_ELAPSED_TIME: '50ms' });
  await t.rejects(other.start(), { message: /within 50ms.*REDIS_URL or KVSTORE_URL is not set/ });
});

t.test('an ACL user logs in and uses its database', async (t) => {
  const redis = await startRedis({ args: ['--user', 'limiter', 'on', '>secret', '~*', '+@all'] });
  t.teardown(redis.stop);
  t.equal(await count(t, { KVSTORE_URL: redis.address, KVSTORE_AUTH: 'limiter:secret' }), 1);
  t.equal(await count(t, { KVSTORE_URL: `redis://limiter:secret@${redis.address}` }), 2);
  t.equal(await count(t, { KVSTORE_URL: `redis://limiter:secret@${redis.address}?db=2` }), 1);
});

t.test('a path is a unix socket for every socket type', async (t) => {
  const redis = await startRedis({ unixSocket: true });
  t.teardown(redis.stop);
  t.equal(await count(t, { KVSTORE_URL: redis.socketPath }), 1);
  t.equal(await count(t, { KVSTORE_URL: `unix://${redis.socketPath}` }), 2);
  t.equal(await count(t, { KVSTORE_URL: redis.socketPath, KVSTORE_SOCKET_TYPE: 'unix' }), 3);
});

t.test('TLS: only the authority in KVSTORE_TLS_CACERT is trusted', async (t) => {
  const redis = await startRedis({ tls: getTlsFiles(certificates), args: noClientCertificate });
  t.teardown(redis.stop);
  const ca = { KVSTORE_TLS_CACERT: certificates.ca.certFile };
  const localhost = `localhost:${redis.port}`;
  t.equal(await count(t, { KVSTORE_URL: localhost, KVSTORE_TLS: 'true', ...ca }), 1);
  t.equal(await count(t, { KVSTORE_URL: redis.address, KVSTORE_TLS: 'true', ...ca }), 2);
  t.equal(await count(t, { KVSTORE_URL: `rediss://${localhost}`, ...ca }), 3);
  await t.rejects(count(t, { ...impatient, KVSTORE_URL: localhost, KVSTORE_TLS: 'true' }));
  await t.rejects(count(t, { ...impatient, KVSTORE_URL: localhost, ...ca }), 'no TLS, no answer');
});

t.test('TLS: …_SKIP_HOSTNAME_VERIFICATION skips the host name, but not the chain', async (t) => {
  const elsewhere = certificates.issue({ name: 'elsewhere', subjectAltNames: ['DNS:elsewhere.test'] });
  const { certFile, keyFile } = elsewhere;
  const redis = await startRedis({
    tls: { certFile, keyFile, caFile: certificates.ca.certFile },
    args: noClientCertificate,
  });
  t.teardown(redis.stop);
  const env = { KVSTORE_URL: redis.address, KVSTORE_TLS: 'true' };
  const ca = { KVSTORE_TLS_CACERT: certificates.ca.certFile };
  const skip = { KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION: 'true' };
  await t.rejects(count(t, { ...impatient, ...env, ...ca }));
  t.equal(await count(t, { ...env, ...ca, ...skip }), 1);

  const others = makeCertificates();
  t.teardown(others.remove);
  await t.rejects(count(t, { ...impatient, ...env, ...skip, KVSTORE_TLS_CACERT: others.ca.certFile }));
  await t.rejects(count(t, { ...impatient, ...env, ...skip }));
});

t.test('TLS: aborted handshakes do not affect other connections', async (t) => {
  const redis = await startRedis({ tls: getTlsFiles(certificates) });
  t.teardown(redis.stop);
  const address = { kind: 'tcp', host: '127.0.0.1', port: redis.port, tls: true } as const;
  // Which moment is the bad one depends on the machine.
  for (let i = 0; i < 45; i += 1) {
    const connection = new RedisConnection({ address });
    const attempt = t.rejects(connection.connect());
    for (let turns = 0; turns < i % 15; turns += 1) await new Promise(setImmediate);
    connection.close();
    await attempt;
  }
});

t.test('mutual TLS: the client certificate is sent to both instances', async (t) => {
  const redis = await startRedis({ tls: getTlsFiles(certificates) });
  t.teardown(redis.stop);
  const env = {
    KVSTORE_URL: redis.address,
    KVSTORE_TLS: 'true',
    KVSTORE_TLS_CACERT: certificates.ca.certFile,
  };
  const pair = {
    KVSTORE_TLS_CLIENT_CERT: certificates.client.certFile,
    KVSTORE_TLS_CLIENT_KEY: certificates.client.keyFile,
  };
  t.equal(await count(t, { ...env, ...pair }), 1);
  await t.rejects(count(t, { ...impatient, ...env }));
  const perSecond = {
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_SOCKET_TYPE: 'tcp',
    KVSTORE_PERSECOND_URL: `rediss://${redis.address}?db=1`,
  };
  const store = await createStore(t, { ...env, ...pair, ...perSecond });
  await store.start();
  t.strictSame(await take(store, [{ ...makeHit('key', 1), unit: 'second' }, makeHit('key', 1)]), [1, 2]);
});

t.test('changed certificates are used for new connections', async (t) => {
  const [before, after] = [makeCertificates(), makeCertificates()];
  t.teardown(before.remove);
  t.teardown(after.remove);
  const folder = makeTextFolder(t).path;
  const at = (name: string): string => join(folder, name);
  const write = ({ ca, client }: Certificates): void => {
    writeFileSync(at('ca.crt'), ca.cert);
    writeFileSync(at('tls.crt'), client.cert);
    writeFileSync(at('tls.key'), client.key);
  };
  write(before);
  const redis = await startRedis({ tls: getTlsFiles(before) });
  t.teardown(redis.stop);
  const log: string[] = [];
  const env = {
    KVSTORE_URL: redis.address,
    KVSTORE_TLS: 'true',
    KVSTORE_TLS_CACERT: at('ca.crt'),
    KVSTORE_TLS_CLIENT_CERT: at('tls.crt'),
    KVSTORE_TLS_CLIENT_KEY: at('tls.key'),
  };
  const store = await createStore(t, env, log);
  await store.start();
  t.strictSame(await take(store, [makeHit('key', 1)]), [1]);

  await redis.stop();
  const next = await startRedis({ port: redis.port, tls: getTlsFiles(after) });
  t.teardown(next.stop);
  write(after);
  await awaitUntil(() => take(store, [makeHit('another key', 1)]), { what: 'Redis', timeoutMs: 60_000 });
  t.match(log.join(''), 'TLS files reloaded');
});

t.test('invalid TLS files are a start error that names them', async (t) => {
  const at = (name: string): string => join(certificates.folder, name);
  writeFileSync(at('garbage.pem'), 'no certificate');
  copyFileSync(certificates.server.keyFile, at('other.key'));
  const env = { KVSTORE_URL: 'localhost:1', KVSTORE_TLS: 'true' };
  await t.rejects(createStore(t, { ...env, KVSTORE_TLS_CACERT: at('missing.pem') }), {
    message: new RegExp(`^the files of KVSTORE_TLS_CACERT, .* ${at('missing.pem')} cannot be read`),
  });
  for (const [certificate, key] of [
    [at('garbage.pem'), certificates.client.keyFile],
    [certificates.client.certFile, at('garbage.pem')],
    [certificates.client.certFile, at('other.key')],
  ]) {
    const pair = { KVSTORE_TLS_CLIENT_CERT: certificate ?? '', KVSTORE_TLS_CLIENT_KEY: key ?? '' };
    await t.rejects(createStore(t, { ...env, ...pair }), { message: /KVSTORE_TLS_CLIENT_KEY/ });
  }
});
