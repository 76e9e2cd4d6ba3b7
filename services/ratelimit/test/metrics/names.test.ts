import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { sanitiseStatKey, statsNames } from '../../src/metrics/names.ts';

t.test('colons and pipes, which separate statsd fields, become underscores', async (t) => {
  t.equal(sanitiseStatKey('domain.path_/a:b|c'), 'domain.path_/a_b_c');
});

t.test('a newline in a value does not start another line', async (t) => {
  t.equal(sanitiseStatKey('user_x\nforged:1|c\r\u0000'), 'user_x_forged_1_c__');
});

t.test('dots inside an IPv4 address become underscores, other dots stay', async (t) => {
  t.equal(sanitiseStatKey('edge.remote_address_10.0.200.1'), 'edge.remote_address_10_0_200_1');
  t.equal(sanitiseStatKey('edge.host_a.example.org'), 'edge.host_a.example.org');
  t.equal(sanitiseStatKey('edge.version_1.2.3'), 'edge.version_1.2.3');
});

t.test('letters of all languages are kept', async (t) => {
  t.equal(sanitiseStatKey('domäne.ключ_值'), 'domäne.ключ_值');
});

t.test('every statistic is used', async (t) => {
  const source = join(import.meta.dirname, '../../src');
  const files = (await readdir(source, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const code = (await Promise.all(files.map((file) => readFile(join(source, file), 'utf8')))).join('\n');
  for (const name of Object.keys(statsNames)) t.ok(new RegExp(`statsNames\\.${name}\\b`).test(code), name);
});
