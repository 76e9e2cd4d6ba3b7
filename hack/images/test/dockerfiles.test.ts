import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { findBinary } from '@tollgate/testkit/binary';
import t from 'tap';
import { imageNames } from '../without-docker/build-image.ts';
import { pairsOf, parseDockerfile } from '../without-docker/parse-dockerfile.ts';
import { readManifest } from '../workspaces.ts';

t.setTimeout(240_000);

const dockerfile = (service: string) => readFile(`services/${service}/Dockerfile`, 'utf8');

t.test('hadolint has nothing to say', { skip: hadolintIsMissing() }, async (t) => {
  for (const name of imageNames) {
    const lint = promisify(execFile)(findBinary('hadolint'), ['--no-color', `services/${name}/Dockerfile`]);
    const problems = await lint.then(
      () => '',
      // What execFile of Node adds to its errors.
      (error: { stdout?: string }) => error.stdout ?? String(error),
    );
    t.equal(problems, '', name);
  }
});

t.test('images are built by the Node that the tests ran on', async (t) => {
  const { devDependencies } = await readManifest('.');
  // Our own package.json.
  const { node } = devDependencies as { node: string };
  for (const name of imageNames) {
    const { args } = parseDockerfile(await dockerfile(name));
    const images = Object.fromEntries(args.flatMap(({ text }) => pairsOf(text)));
    t.match(images.NODE_IMAGE, new RegExp(`^node:${node.replaceAll('.', '\\.')}-`), name);
    t.match(images.BASE_IMAGE, new RegExp(`/nodejs${node.split('.')[0]}-`), name);
  }
});

t.test('the Dockerfiles differ in what they must, and in nothing else', async (t) => {
  const withoutOwn = async (name: string) =>
    (await dockerfile(name))
      .replaceAll(new RegExp(`\\b${name}\\b`, 'g'), '<service>')
      .replace(/description="[^"]*"/, 'description')
      .replace(/^EXPOSE .*$/m, 'EXPOSE')
      .replace(/(NODE_ENV=production) \\\n {4}\S+$/m, '$1');
  const [first, ...others] = await Promise.all(imageNames.map(withoutOwn));
  for (const other of others) t.equal(other, first);
});

/** Why hadolint cannot be asked here; `false` when it can. In CI it is an error. */
function hadolintIsMissing(): string | false {
  try {
    findBinary('hadolint');
    return false;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return `left out: ${error instanceof Error ? error.message : String(error)}`;
  }
}
