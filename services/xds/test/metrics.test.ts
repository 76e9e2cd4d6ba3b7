import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import t from 'tap';
import { settingsSpec } from '../src/config/settings.ts';
import { registerMetrics } from '../src/metrics.ts';

/** The code without the files that `isDefinition` names. */
async function readCode(isDefinition: (file: string) => boolean): Promise<string> {
  const source = join(import.meta.dirname, '../src');
  const files = await readdir(source, { recursive: true });
  const readers = files.filter((file) => file.endsWith('.ts') && !isDefinition(file));
  return (await Promise.all(readers.map((file) => readFile(join(source, file), 'utf8')))).join('\n');
}

/** Labels of these say what went wrong, and parts that do not run have none. */
const withoutFirstSeries = [
  'tollgate_tls_handshake_failures_total',
  'tollgate_xds_refused_streams_total',
  'tollgate_xds_source_errors_total',
  'tollgate_xds_status_writes_total',
];

t.test('every counter has a series from the start', async (t) => {
  const registry = new Registry();
  registerMetrics(registry);
  const text = await registry.metrics();
  const counters = Array.from(text.matchAll(/^# TYPE (\w+) counter$/gm), ([, name = '']) => name);
  const absent = counters.filter((name) => !new RegExp(`^${name}[ {]`, 'm').test(text));
  t.same(new Set(absent), new Set(withoutFirstSeries));
});

t.test('every metric is used', async (t) => {
  // `countReloads` chooses these by a name.
  const byName = new Set(['filesCurrent', 'tlsReloads', 'tokenReloads']);
  const code = await readCode((file) => file === 'metrics.ts');
  for (const name of Object.keys(registerMetrics(new Registry())).filter((name) => !byName.has(name)))
    t.ok(new RegExp(`\\b${name}\\b`).test(code), name);
});

t.test('every setting is used', async (t) => {
  const code = await readCode((file) => /^config\/.+-settings\.ts$/.test(file));
  for (const [key, { env }] of Object.entries(settingsSpec)) t.ok(new RegExp(`\\b${key}\\b`).test(code), env);
});
