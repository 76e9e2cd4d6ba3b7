import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { auditActions, eventTypes } from '../../src/audit/actions.ts';

const root = join(import.meta.dirname, '../../../..');
/** Actions whose entry is an event. */
const withEvent = Object.entries(auditActions).flatMap(([action, row]) =>
  'event' in row ? [{ action, event: row.event }] : [],
);
const source = join(import.meta.dirname, '../../src');

t.test('each type of event is in the documentation, and no other', async (t) => {
  const page = await readFile(join(root, 'docs/event-webhooks.md'), 'utf8');
  const documented = page
    .split('\n')
    .filter((line) => /^\| `[a-z_]+\.[a-z_]+`/.test(line))
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, type]) => type));
  t.same(documented.toSorted(), [...eventTypes].toSorted());
});

t.test('each event of a row has a trigger, and each trigger an event', async (t) => {
  const folder = join(source, 'db/migrations');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql'));
  const sql = (await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))).join('\n');
  const written = sql.matchAll(
    /(?:tollgate_write_event|execute function tollgate_\w+_event)\('([a-z_]+\.[a-z_]+)'/g,
  );
  const ofEntries = withEvent.map(({ event }): string => event);
  t.same(
    [...new Set([...written].map(([, type]) => type))].toSorted(),
    eventTypes.filter((type) => !ofEntries.includes(type)).toSorted(),
  );
});

t.test('each action whose entry is an event is written', async (t) => {
  const files = (await readdir(source, { recursive: true })).filter(
    (file) => file.endsWith('.ts') && file !== 'audit/actions.ts',
  );
  const code = (await Promise.all(files.map((file) => readFile(join(source, file), 'utf8')))).join('\n');
  for (const { action } of withEvent) t.ok(code.includes(`'${action}'`), action);
});
