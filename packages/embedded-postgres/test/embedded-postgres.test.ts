import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import postgres from 'postgres';
import t from 'tap';
import { startEmbeddedPostgres } from '../src/embedded-postgres.ts';

async function ask(url: string, query: string): Promise<unknown> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return (await sql.unsafe(query))[0];
  } finally {
    await sql.end();
  }
}

t.test('committed data is kept after a restart', async (t) => {
  const folder = temporaryFolder();
  const first = await startEmbeddedPostgres({ folder: folder.path, password: 'p@ss word' });
  await ask(first.url('postgres'), 'create table kept as select 7 as number');
  await first.stop();
  // A process id that is alive and no PostgreSQL: what a crash followed by a reboot leaves behind.
  writeFileSync(join(folder.path, 'data/postmaster.pid'), `${process.pid}\n${folder.path}\n0\n1\n`);

  const second = await startEmbeddedPostgres({ folder: folder.path, password: 'p@ss word' });
  t.teardown(async () => {
    await second.stop();
    folder.remove();
  });
  t.same(await ask(second.url('postgres'), 'select number from kept'), { number: 7 });
});

t.test('a server left running is replaced by the next one', async (t) => {
  const folder = temporaryFolder();
  const orphan = await startEmbeddedPostgres({ folder: folder.path });
  await ask(orphan.url('postgres'), 'create table kept as select 8 as number');

  const next = await startEmbeddedPostgres({ folder: folder.path });
  t.teardown(async () => {
    await next.stop();
    folder.remove();
  });
  await orphan.ended;
  t.same(await ask(next.url('postgres'), 'select number from kept'), { number: 8 });
});
