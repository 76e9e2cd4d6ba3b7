import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type ServerProcess, startServerProcess } from '@tollgate/testkit/server-process';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import type { Test } from 'tap';
import { askProbe } from '../kubelet/ask-probe.ts';
import type { ClusterFiles } from './cluster-files.ts';
import type { Container, PodSpec, PodTemplate, Volume } from './manifest-object.ts';

/** The containers of a Pod as processes of this machine. */
export interface StartedPod extends ServerProcess {
  /** Asks every probe of the service once. @throws Error when one fails. */
  askProbes(): Promise<void>;
  /** `http://127.0.0.1:<number>` of a port, by its name. */
  urlOf(port: string): string;
}

/** What the image of a service has as its working folder. */
const imageFolder = resolve(import.meta.dirname, '../../..');

/** Migrations take a second; a machine with other work is given more. */
const startTimeoutMs = 60_000;

const run = promisify(execFile);

/**
 * Starts what a Pod template describes: with its arguments, its variables and nothing else in the environment, its Secrets
 * and ConfigMaps as files. Ready when the readiness probe of the template says so. These files lie below a temporary folder,
 * and where a variable names one, that is put in. Stopped when the test ends.
 */
export async function startPod(t: Test, template: PodTemplate, files: ClusterFiles): Promise<StartedPod> {
  const [container, ...others] = template.spec.containers;
  if (container === undefined || others.length > 0) throw new Error(`${template.of} has not one container`);
  const root = temporaryFolder();
  t.teardown(root.remove);
  const folders = writeVolumes(template.spec, files, root.path);
  for (const first of template.spec.initContainers ?? []) {
    const [command = '', ...args] = commandOf(first, template.spec);
    await run(command, args, {
      cwd: imageFolder,
      env: environmentOf(first, files, folders),
      timeout: startTimeoutMs,
    });
  }
  const [command = '', ...args] = commandOf(container, template.spec);
  const server = await startServerProcess({
    command,
    args,
    env: environmentOf(container, files, folders),
    ready: () => askProbe(container.readinessProbe, container),
    readyTimeoutMs: startTimeoutMs,
  });
  t.teardown(() => server.stop());
  return {
    ...server,
    async askProbes() {
      for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
        await askProbe(probe, container);
      }
    },
    urlOf(port) {
      const found = container.ports?.find(({ name }) => name === port);
      if (found === undefined) throw new Error(`${template.of} has no port ${port}`);
      return `http://127.0.0.1:${found.containerPort}`;
    },
  };
}

/** The entry point of the images is Node.js; without arguments it runs the service that the container is named for. */
function commandOf({ name, args }: Container, { containers }: PodSpec): string[] {
  const main = `services/${containers[0]?.name ?? name}/src/main.ts`;
  return [process.execPath, ...(args ?? [main])].map((word) =>
    word.startsWith('services/') ? join(imageFolder, word) : word,
  );
}

/** Writes the files of all volumes that have some; answers where each path of a mount really is. */
function writeVolumes(spec: PodSpec, files: ClusterFiles, root: string): ReadonlyMap<string, string> {
  const mounts = spec.containers.flatMap(({ volumeMounts = [] }) => volumeMounts);
  const folders = new Map<string, string>();
  for (const volume of spec.volumes ?? []) {
    const folder = join(root, volume.name);
    mkdirSync(folder);
    for (const [name, text] of Object.entries(contentOf(volume, files))) {
      writeFileSync(join(folder, name), text);
      for (const mount of mounts) if (mount.name === volume.name) folders.set(mount.mountPath, folder);
    }
  }
  return folders;
}

function contentOf({ secret, configMap }: Volume, files: ClusterFiles): Readonly<Record<string, string>> {
  if (secret !== undefined) return files.secret(secret.secretName);
  return configMap === undefined ? {} : files.configMap(configMap.name);
}

/** The variables as the kubelet makes them: `env` comes before `envFrom`, and `$(NAME)` is filled in. */
function environmentOf(
  { env = [], envFrom = [] }: Container,
  files: ClusterFiles,
  folders: ReadonlyMap<string, string>,
): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const { secretRef } of envFrom) {
    const data =
      secretRef.optional === true ? files.optionalSecret(secretRef.name) : files.secret(secretRef.name);
    Object.assign(variables, data);
  }
  for (const { name, value, valueFrom } of env) {
    const key = valueFrom?.secretKeyRef;
    const text =
      value ??
      (key === undefined ? fieldOf(valueFrom?.fieldRef?.fieldPath) : files.secret(key.name)[key.key]);
    const filled = text?.replaceAll(/\$\((\w+)\)/g, (all, other: string) => variables[other] ?? all);
    variables[name] = whereItIs(filled ?? '', folders);
  }
  return variables;
}

const fieldOf = (path: string | undefined): string => (path === 'metadata.namespace' ? 'default' : 'pod-0');

function whereItIs(text: string, folders: ReadonlyMap<string, string>): string {
  const [mountPath, folder] =
    [...folders].find(([path]) => text === path || text.startsWith(`${path}/`)) ?? [];
  return mountPath === undefined ? text : `${folder}${text.slice(mountPath.length)}`;
}
