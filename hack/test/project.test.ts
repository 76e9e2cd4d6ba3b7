import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { load } from 'js-yaml';
import t from 'tap';

/** The members of a package.json that are read here. */
interface Manifest {
  readonly license?: string;
  readonly homepage?: string;
  readonly repository?: { readonly url: string; readonly directory?: string };
}

const read = (path: string) => readFile(path, 'utf8');

t.test('LICENSE is the unmodified Apache License 2.0, in the SDK too', async (t) => {
  const text = await read('LICENSE');
  const digest = createHash('sha256').update(text).digest('hex');
  t.equal(digest, 'cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30');
  t.equal(await read('client-sdk/LICENSE'), text, 'npm publishes the LICENSE beside package.json');
});

t.test('every package names its license, repository and homepage', async (t) => {
  const { workspaces } = JSON.parse(await read('package.json'));
  const patterns = workspaces.map((workspace: string) => `${workspace}/package.json`);
  const paths: string[] = [];
  for await (const path of glob(['package.json', ...patterns])) paths.push(path);
  t.ok(paths.length > 8);
  const root: Manifest = JSON.parse(await read('package.json'));
  for (const path of paths) {
    const { license, homepage, repository }: Manifest = JSON.parse(await read(path));
    const directory = path === 'package.json' ? undefined : path.replace('/package.json', '');
    t.equal(license, 'Apache-2.0', path);
    t.equal(repository?.url, root.repository?.url, path);
    t.equal(repository?.directory, directory, path);
    t.ok(homepage?.startsWith(root.repository?.url.replace(/^git\+|\.git$/g, '') ?? '-'), path);
  }
});

t.test('CODEOWNERS names only paths that exist', async (t) => {
  const lines = (await read('.github/CODEOWNERS')).split('\n').filter((line) => /^[^#\s]/.test(line));
  t.ok(lines.length > 1);
  for (const line of lines) {
    const [path = '', ...owners] = line.split(/\s+/);
    t.ok(path === '*' || existsSync(path.slice(1)), path);
    t.ok(owners.length > 0 && owners.every((owner) => /^@[\w-]+\/[\w-]+$/.test(owner)), line);
  }
});

t.test('issue forms parse, and point to private reports of vulnerabilities', async (t) => {
  for await (const path of glob('.github/ISSUE_TEMPLATE/*.yaml'))
    t.type(load(await read(path)), 'object', path);
  t.match(await read('.github/ISSUE_TEMPLATE/bug.yaml'), /SECURITY\.md/);
  t.match(await read('.github/pull_request_template.md'), /make test/);
});

const hint = join(import.meta.dirname, '../setup-hint.cjs');

function run(file: string): { status: number | null; stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8' });
  return { status, stderr };
}

t.test('without packages the hint says to run make setup', (t) => {
  const checkout = temporaryFolder();
  t.teardown(checkout.remove);
  mkdirSync(join(checkout.path, 'hack'));
  const copy = join(checkout.path, 'hack/setup-hint.cjs');
  copyFileSync(hint, copy);
  t.match(run(copy), { status: 1, stderr: /^Nothing is installed yet\. Run `make setup`/ });
  t.end();
});

t.test('the hint is silent in a checkout that is set up', (t) => {
  t.same(run(hint), { status: 0, stderr: '' });
  t.end();
});
