import t from 'tap';
import { forbiddenTexts } from '../forbidden-texts.ts';

/** Joined here, so that this file does not contain what the check looks for. */
const host = ['registry', 'npmjs', 'org'].join('.');
const machinePath = ['', 'home', 'ada', 'src'].join('/');

t.test('host names of registries are reported with line and reason', async (t) => {
  t.same(forbiddenTexts('docs/a.md', `fine\nsee https://${host}/x`), [
    `docs/a.md:2: names a package registry; the machine decides where packages come from: registry.${'npmjs'}`,
  ]);
});

t.test('absolute paths of one machine are reported, other paths are not', async (t) => {
  t.match(forbiddenTexts('a.ts', `const x = '${machinePath}';`), [/absolute path of one machine/]);
  t.same(
    forbiddenTexts(
      'a.ts',
      `open('/srv/runtime_data'); fetch('/api/home/x', './work/a', 'https://x.org/root/a')`,
    ),
    [],
  );
});

t.test('addresses in a lock file are reported, links between workspaces are not', async (t) => {
  const line = (address: string) => `      "resolved": "${address}",`;
  t.same(forbiddenTexts('package-lock.json', line('packages/kit')), []);
  t.match(forbiddenTexts('package-lock.json', line('https://example.org/a.tgz')), [/lock file/]);
  t.same(forbiddenTexts('docs/a.md', line('https://example.org/a.tgz')), []);
});

t.test('private keys are reported', async (t) => {
  t.match(forbiddenTexts('a.pem', `-----BEGIN ${'EC PRIVATE'} KEY-----`), [/private key/]);
});
