import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { parseArguments } from '../../src/cli/arguments.ts';
import { readSettingsFrom } from '../../src/cli/load-settings.ts';
import { commands } from '../../src/cli/run-command.ts';
import { SettingsReload } from '../../src/cli/serve.ts';

const common = `SVC_SITE_URL=https://example.com
SVC_API_EXTERNAL_URL=https://auth.example.com
SVC_DB_DRIVER=postgres
DATABASE_URL=postgres://u:p@db/auth
SVC_JWT_SECRET=${'s'.repeat(32)}
SVC_SMTP_ADMIN_EMAIL=a@example.com
SVC_SMTP_HOST=smtp
SVC_SMTP_PORT=25
SVC_JWT_EXP=600
`;

function makeKeys(kid: string): string {
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return JSON.stringify([{ ...jwk, kid, alg: 'EdDSA', key_ops: ['sign', 'verify'] }]);
}

/**
 * A folder of variables that is followed, and what came of it. `own` are in it at the start, `late`
 * since just before it is followed.
 */
async function followedFolder(t: Test, { own = '', late = '' } = {}) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const write = (name: string, text: string) => writeFile(join(folder.path, name), text);
  await write('10-common.env', `${common}${own}`);
  const read = () => readSettingsFrom({ folder: folder.path });
  const loaded = await read();
  if (!loaded.ok) throw new Error(loaded.message);
  await write('late.env', late);
  const keys: string[] = [];
  const lines: string[] = [];
  const logger = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  });
  // Keys that are equal are no change.
  const replaceKeys = (jwtKeys: string): boolean =>
    jwtKeys === loaded.settings.jwtKeys || keys.push(jwtKeys) > 0;
  const reload = new SettingsReload(folder.path, { loaded, read, replaceKeys, logger });
  await reload.start();
  t.teardown(() => reload.stop());
  return { settings: loaded.settings, write, keys, logs: () => lines.join('') };
}

t.test('of two files in a folder the last by name wins', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  await writeFile(join(folder.path, '10-common.env'), common);
  await writeFile(join(folder.path, '20-own.env'), 'SVC_JWT_EXP=900\n');
  await writeFile(join(folder.path, 'README'), 'SVC_JWT_EXP=1\n');
  const read = await readSettingsFrom({ folder: folder.path });
  t.match(read, { ok: true, settings: { jwtExpMs: 900_000 } });
  t.equal(read.ok && read.sources.files?.get('SVC_JWT_EXP'), join(folder.path, '20-own.env'));
  t.match(await readSettingsFrom({ folder: '/nowhere' }), { ok: false, message: /\/nowhere/ });
});

t.test('flags set file and folder', (t) => {
  t.match(parseArguments(['serve', '-c', 'auth.env', '-d', 'auth.d'], commands), {
    kind: 'run',
    options: { environmentFiles: { file: 'auth.env', folder: 'auth.d' } },
  });
  t.end();
});

t.test('keys in a folder are reloaded while the service runs', async (t) => {
  const { write, keys } = await followedFolder(t);
  const next = makeKeys('next');
  await write('keys.env', `SVC_JWT_KEYS='${next}'\n`);
  await awaitUntil(() => keys.at(-1) === next, { what: 'the new keys' });
});

t.test('keys that changed during startup are loaded', async (t) => {
  const next = makeKeys('next');
  const { keys } = await followedFolder(t, { late: `SVC_JWT_KEYS='${next}'\n` });
  t.equal(keys.at(-1), next);
});

t.test('the source of keys changes at the next start only', async (t) => {
  const next = `SVC_JWT_KEYS='${makeKeys('next')}'\n`;
  const ofFile = await followedFolder(t, { own: 'SVC_JWT_KEYS_FILE=keys.json\n' });
  const ofFolder = await followedFolder(t, { own: next });
  await ofFile.write('own.env', `SVC_JWT_KEYS_FILE=\n${next}`);
  await ofFolder.write('own.env', 'SVC_JWT_KEYS_FILE=keys.json\nSVC_JWT_KEYS=\n');
  for (const { keys, logs } of [ofFile, ofFolder]) {
    const isLogged = () => logs().includes('"variables":["SVC_JWT_KEYS","SVC_JWT_KEYS_FILE"]');
    await awaitUntil(isLogged, { what: 'the warning' });
    t.notOk(keys.includes(''), 'JWT_SECRET does not become the signing key');
  }
  t.same(ofFile.keys, []);
});

t.test('settings that require a restart are logged without values', async (t) => {
  const { write, logs } = await followedFolder(t);
  await write('own.env', 'SVC_SMTP_PASS=geheim\nSVC_JWT_EXP=900\n');
  const what = 'the warning';
  await awaitUntil(() => logs().includes('changed settings take effect at the next start'), {
    what,
  });
  t.match(logs(), '"variables":["SVC_JWT_EXP","SVC_SMTP_PASS"]');
  t.notMatch(logs(), 'geheim');
});

t.test('invalid settings are rejected as a whole', async (t) => {
  const { write, keys, logs } = await followedFolder(t);
  await write('own.env', `SVC_JWT_EXP=soon\nSVC_JWT_KEYS='${makeKeys('next')}'\n`);
  await awaitUntil(() => logs().includes('rejected changed settings'), { what: 'the problem' });
  t.match(logs(), /SVC_JWT_EXP is .*soon/);
  t.same(keys, []);
});
