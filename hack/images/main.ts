// The steps of the Dockerfiles of the services. Nothing is installed yet when they run, so this imports Node's own modules alone.
import { copyCode } from './copy-code.ts';
import { imageManifests, writeFiles } from './image-manifests.ts';
import { installPackages } from './install-packages.ts';
import { workspacesOf } from './workspaces.ts';

const usage = `node hack/images/main.ts files <service> <folder>
  From the root of a checkout: writes the code of the service to <folder>/code, and to <folder>/manifests
  what npm installs its packages from.
node hack/images/main.ts packages <folder> [platform]
  Installs the packages of such a folder of manifests, without what only compilers, people and tests read.
`;

// What is made here, others read.
process.umask(0o022);
const [command, ...args] = process.argv.slice(2);
if (command === 'files' && args.length === 2) await files(args[0] ?? '', args[1] ?? '');
else if (command === 'packages' && args[0] !== undefined) await installPackages(args[0], args[1] ?? '');
else {
  process.stderr.write(usage);
  process.exitCode = 2;
}

async function files(service: string, folder: string): Promise<void> {
  const root = process.cwd();
  const workspaces = await workspacesOf(root, `services/${service}`);
  await writeFiles(`${folder}/manifests`, await imageManifests(root, workspaces));
  await copyCode(root, workspaces, `${folder}/code`);
}
