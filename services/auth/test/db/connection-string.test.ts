import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { startPostgres } from '@tollgate/testkit/postgres';
import postgres from 'postgres';
import t from 'tap';
import { connect, disconnect } from '../../src/db/connection.ts';
import { parseConnectionString } from '../../src/db/connection-string.ts';
import { migrate } from '../../src/db/migrate.ts';
import { IdentityListener } from '../../src/ext-authz/identity-listener.ts';

const logger = createLogger({ level: 'fatal', format: 'json' });
const certificates = makeCertificates();
t.teardown(certificates.remove);
const server = await startPostgres();
t.teardown(() => server.stop());
const { url } = await server.createDatabase();
const admin = postgres(url, { max: 1, onnotice: () => undefined });
t.teardown(() => admin.end());

/**
 * Effect of a connection string: whether all connections are encrypted, and its schema, or the
 * reason why it fails.
 */
async function connected(parameters: string): Promise<string> {
  const options = {
    databaseUrl: `${url.replace('127.0.0.1', 'localhost')}${parameters}`,
    dbNamespace: 'auth',
    dbMaxPoolSize: 1,
  };
  try {
    await migrate(options, { logger });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const sql = connect(options);
  const listener = new IdentityListener({ ...options, onChange: () => undefined, logger });
  listener.start();
  try {
    await awaitUntil(() => listener.isUp(), { what: 'the listener' });
    const [row] = await sql`select current_schema() as schema`;
    const uses = await sql`select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid)
      where application_name in ('tollgate-auth', 'tollgate-auth-listen') and datname = current_database()`;
    return `${uses.map(({ ssl }) => (ssl === true ? 'encrypted' : 'plain')).join()} ${row?.schema}`;
  } finally {
    await listener.stop();
    await disconnect(sql);
  }
}

t.test('without TLS support the connection is plaintext, unless sslmode requires TLS', async (t) => {
  for (const parameters of ['', '?sslmode=disable', '?sslmode=prefer', '?sslmode=allow&connect_timeout=10'])
    t.equal(await connected(parameters), 'plain auth', parameters);
  for (const parameters of ['?sslmode=require', '?sslmode=verify-full'])
    t.match(await connected(parameters), /failed to migrate .*: The server does not support SSL/);
});

t.test('DB_NAMESPACE overrides search_path of the connection string', async (t) => {
  t.equal(await connected('?search_path=public&sslmode=disable'), 'plain auth');
  t.equal(await connected('?connect_timeout=10&search_path=auth'), 'plain auth');
});

t.test('the owner of the schema needs no privilege on the database', async (t) => {
  const database = await server.createDatabase();
  const sql = postgres(database.url, { max: 1 });
  t.teardown(() => sql.end());
  await sql.unsafe(`create role owner login password 'x'; create schema auth authorization owner`);
  const owner = Object.assign(new URL(database.url), { username: 'owner', password: 'x' });
  const ran = await migrate({ databaseUrl: owner.href, dbNamespace: 'auth' }, { logger });
  t.ok(ran.length > 0);
});

t.test('with TLS support the connection is encrypted, and verified according to sslmode', async (t) => {
  await server.speakTls(certificates.server);
  for (const parameters of [
    '',
    '?sslmode=prefer',
    '?sslmode=require',
    `?sslmode=require&sslrootcert=${certificates.ca.certFile}`,
    `?sslmode=verify-ca&sslrootcert=${certificates.ca.certFile}`,
    `?sslmode=verify-full&sslrootcert=${certificates.ca.certFile}`,
  ])
    t.equal(await connected(parameters), 'encrypted auth', parameters);
  t.equal(await connected('?sslmode=disable'), 'plain auth');
  for (const parameters of ['?sslmode=verify-full', '?sslmode=verify-ca', '?sslrootcert=system'])
    t.match(await connected(parameters), /failed to migrate .*: (?:self-signed|unable to)/, parameters);
  t.match(
    await connected(`?sslmode=verify-full&sslrootcert=${certificates.folder}/nothing.crt`),
    /^sslrootcert of DATABASE_URL cannot be read: ENOENT/,
  );
});

t.test('verify-ca accepts a certificate for another name', async (t) => {
  await server.speakTls(certificates.issue({ name: 'other', subjectAltNames: ['DNS:other.test'] }));
  const authority = `sslrootcert=${certificates.ca.certFile}`;
  t.equal(await connected(`?sslmode=verify-ca&${authority}`), 'encrypted auth');
  t.match(await connected(`?sslmode=verify-full&${authority}`), /does not match certificate/);
});

t.test('several hosts are a connection string each', (t) => {
  const { urls } = parseConnectionString(
    'postgres://u:p,1@a:1,[::1]:2,c/d?target_session_attrs=read-write&connect_timeout=9',
  );
  t.same(
    urls,
    ['a:1', '[::1]:2', 'c'].map((host) => `postgres://u:p,1@${host}/d?connect_timeout=9`),
  );
  t.end();
});

t.test('other parameters of a connection string are kept', (t) => {
  const read = (text: string) => parseConnectionString(text).urls;
  t.same(read('postgres://u:p%40@h:1/d?sslmode=disable'), ['postgres://u:p%40@h:1/d']);
  t.same(read('postgres://h/d?a=b%20c&sslmode=disable&d=e'), ['postgres://h/d?a=b%20c&d=e']);
  t.same(read('postgres://h/d'), ['postgres://h/d']);
  t.end();
});
