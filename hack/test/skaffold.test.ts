import { existsSync, globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import t from 'tap';
import { clusterArguments, helmIsMissing, runHelm } from '../charts/support/helm.ts';
import { getPodTemplates, type ManifestObject, parseManifests } from '../charts/support/manifests.ts';
import { services } from '../images/build-images.ts';

/** Members of skaffold.yaml that must agree with the rest of the repository. */
interface Skaffold {
  readonly build: { readonly artifacts: readonly Artifact[] };
  readonly deploy: { readonly helm: { readonly releases: readonly Release[] } };
  readonly portForward: readonly PortForward[];
  readonly profiles: readonly Profile[];
}

interface Artifact {
  readonly image: string;
  readonly context: string;
  readonly docker: {
    readonly dockerfile: string;
    readonly buildArgs: { readonly SERVICE: string };
    readonly target?: string;
  };
  readonly sync: { readonly manual: readonly { readonly src: string; readonly dest: string }[] };
}

interface Release {
  readonly name: string;
  readonly namespace: string;
  readonly chartPath: string;
  readonly valuesFiles: readonly string[];
  readonly setValueTemplates: Readonly<Record<string, string>>;
  readonly setValues?: Readonly<Record<string, string | number | boolean>>;
}

interface PortForward {
  readonly resourceType: string;
  readonly resourceName: string;
  readonly namespace: string;
  readonly port: number;
  readonly localPort: number;
}

interface Profile {
  readonly name: string;
  readonly patches?: readonly { readonly op: string; readonly path: string; readonly value?: unknown }[];
}

const skip = helmIsMissing();
// Our own file; what is missing in it fails below.
const config = load(await readFile('skaffold.yaml', 'utf8')) as Skaffold;
const { artifacts } = config.build;

t.test('every file that is named exists', async (t) => {
  for (const { context, docker } of artifacts) {
    t.ok(existsSync(docker.dockerfile), docker.dockerfile);
    t.equal(context, '.', 'the Dockerfile copies from the root');
  }
  t.strictSame(
    artifacts.map(({ image, docker }) => [image, docker.buildArgs.SERVICE]),
    services.map((service) => [`tollgate/${service}`, service]),
  );
  for (const { chartPath, valuesFiles } of config.deploy.helm.releases) {
    for (const file of [`${chartPath}/Chart.yaml`, ...valuesFiles]) t.ok(existsSync(file), file);
  }
});

t.test('the profiles dev, kind and ci patch existing fields', async (t) => {
  t.strictSame(
    config.profiles.map(({ name }) => name),
    ['dev', 'kind', 'ci'],
  );
  for (const { name, patches = [] } of config.profiles) {
    const patched = structuredClone(config);
    for (const { path, value } of patches) t.ok(add(patched, path, value), `${name}: ${path}`);
  }
});

t.test('every profile deploys the images that it builds', { skip }, async (t) => {
  for (const profile of [undefined, ...config.profiles]) {
    const patched = structuredClone(config);
    for (const { path, value } of profile?.patches ?? []) add(patched, path, value);
    const [release] = patched.deploy.helm.releases;
    const values = Object.entries(release?.setValueTemplates ?? {}).map(([name, template]) =>
      // As Skaffold does: characters that a variable cannot have are underscores.
      template.replace(/\{\{\.IMAGE_(REPO|TAG)_(\w+)\}\}/, (_whole, part: string, image: string) => {
        const known = artifacts.find(({ image: candidate }) => candidate.replaceAll(/\W/g, '_') === image);
        t.ok(known, `${name}: ${image}`);
        return part === 'TAG' ? `${name}=built` : `${name}=registry.example.com/${known?.image}`;
      }),
    );
    const set = Object.entries(release?.setValues ?? {}).map(([name, value]) => `${name}=${value}`);
    t.strictSame(
      await getImages(
        release,
        [...values, ...set].map((value) => `--set=${value}`),
      ),
      artifacts.map(({ image }) => `registry.example.com/${image}`),
      profile?.name ?? 'without a profile',
    );
  }
});

t.test('forwarded ports exist', { skip }, async (t) => {
  const [release] = config.deploy.helm.releases;
  const objects = await objectsOfRelease(release, []);
  for (const { resourceType, resourceName, namespace, port, localPort } of config.portForward) {
    const what = `${resourceType}/${resourceName} ${port}`;
    t.equal(namespace, release?.namespace, what);
    const object = objects.find(
      ({ kind, metadata }) => kind.toLowerCase() === resourceType && metadata.name === resourceName,
    );
    const ports =
      resourceType === 'service'
        ? // A Service has ports.
          (object?.spec as { ports: { port: number }[] } | undefined)?.ports.map(({ port }) => port)
        : getPodTemplates(object === undefined ? [] : [object]).flatMap(({ spec }) =>
            spec.containers.flatMap(({ ports = [] }) => ports.map(({ containerPort }) => containerPort)),
          );
    t.ok(ports?.includes(port), what);
    t.ok(localPort >= 1024, `${what}: a port that needs no rights`);
  }
  const local = config.portForward.map(({ localPort }) => localPort);
  t.equal(new Set(local).size, local.length, 'no two on the same port');
});

t.test('synchronised files replace those of the image', async (t) => {
  const dev = structuredClone(config);
  for (const { path, value } of config.profiles[0]?.patches ?? []) add(dev, path, value);
  for (const { image, docker, sync } of dev.build.artifacts) {
    const text = await readFile(docker.dockerfile, 'utf8');
    const stage = new RegExp(`^FROM \\S+ AS ${docker.target}$[\\s\\S]*?^WORKDIR (.*)$`, 'm').exec(text);
    t.ok(stage, `${image} has a stage ${docker.target}`);
    const folder = stage?.[1];
    for (const { src, dest } of sync.manual) {
      t.equal(dest, folder, `${image}: ${src}`);
      t.ok(globSync(src).length > 0, `${image}: ${src}`);
    }
  }
});

/** Adds as a JSON patch does; false when what it is added to is not there. */
function add(target: object, path: string, value: unknown): boolean {
  const [last = '', ...parents] = path.split('/').slice(1).toReversed();
  let parent: unknown = target;
  for (const key of parents.toReversed()) parent = Reflect.get(Object(parent), key);
  return typeof parent === 'object' && parent !== null && Reflect.set(parent, last, value);
}

async function objectsOfRelease(
  release: Release | undefined,
  args: readonly string[],
): Promise<ManifestObject[]> {
  const { name = '', namespace = '', chartPath = '', valuesFiles = [] } = release ?? {};
  const values = valuesFiles.map((file) => `--values=${file}`);
  const { code, stdout, stderr } = await runHelm([
    ...['template', name, chartPath, `--namespace=${namespace}`],
    ...clusterArguments,
    ...values,
    ...args,
  ]);
  if (code !== 0) throw new Error(`helm template ${args.join(' ')}: ${stderr}`);
  return parseManifests(stdout);
}

/** The images of all our containers, without tags, each once. */
async function getImages(release: Release | undefined, args: readonly string[]): Promise<string[]> {
  const templates = getPodTemplates(await objectsOfRelease(release, args));
  const deployments = templates.filter(({ of }) => of.startsWith('Deployment'));
  const images = deployments.flatMap(({ spec }) =>
    [...(spec.initContainers ?? []), ...spec.containers].map(({ image }) => withoutTag(image)),
  );
  return [...new Set(images)].toSorted((a, b) => a.localeCompare(b));
}

function withoutTag(image: string): string {
  return image.replace(/:[^:/]+$/, '');
}
