import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Service } from '../../images/build-images.ts';

/** What the image of a service adds to its base. */
export interface ServiceImage {
  /** Mounted as `workingFolder`. */
  readonly folder: string;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The arguments of a container without any. */
  readonly command: readonly string[];
  /** Files outside of the working folder: their sources by path. */
  readonly files: Readonly<Record<string, string>>;
}

const repository = resolve(import.meta.dirname, '../../..');
const node = '/nodejs/bin/node';

/** The base of all images: the Node.js that runs the tests is the entry point. */
export const baseImage = {
  entrypoint: node,
  files: { [node]: process.execPath },
  environment: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
} as const;

/** The image of a service with the whole checkout in it, which takes no time to make. */
export function checkoutImage(service: string): ServiceImage {
  const dockerfile = readFileSync(join(repository, 'Dockerfile'), 'utf8');
  const [, ownStage = ''] =
    new RegExp(`^FROM \\S+ AS ${service}$([\\s\\S]*?)^FROM `, 'm').exec(dockerfile) ?? [];
  const [finalStage = ''] = /^FROM \$\{SERVICE\}$[\s\S]*/m.exec(dockerfile) ?? [];
  const stages = ownStage + finalStage;
  const [, command = ''] = /^CMD (.*)$/m.exec(stages) ?? [];
  const [, workingFolder = ''] = /^WORKDIR (.*)$/m.exec(stages) ?? [];
  const environment = [...stages.matchAll(/^ENV (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]);
  const programs = [...stages.matchAll(/^COPY --chmod=755 (\S+) (\S+)$/gm)].flatMap(
    ([, source = '', target = '']) =>
      readdirSync(join(repository, source)).map((name) => [
        join(target, name),
        join(repository, source, name),
      ]),
  );
  return {
    folder: repository,
    workingFolder,
    environment: Object.fromEntries(environment),
    // Parsed boundary: our own Dockerfile.
    command: JSON.parse(command) as string[],
    files: Object.fromEntries(programs),
  };
}

/**
 * The image of a service with the files that the Dockerfile gives it, made in an empty folder.
 * Packages are installed, which takes seconds, and a minute on a busy machine.
 */
export function assembleImage(service: Service, folder: string): ServiceImage {
  const manifests = [
    'package*.json',
    '{packages,services}/*/package.json',
    '{proto,client-sdk}/package.json',
  ];
  for (const path of globSync(manifests, { cwd: repository }))
    cpSync(join(repository, path), join(folder, path));
  runImageFiles(['packages', folder, service]);
  runImageFiles(['code', join(folder, 'node_modules/@tollgate'), folder]);
  for (const code of ['packages', 'services']) runImageFiles(['strip', join(folder, code)]);
  return { ...checkoutImage(service), folder };
}

/** npm gets an environment of its own: tap adds to that of every process. */
function runImageFiles(args: readonly string[]): void {
  const environment = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: homedir(),
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
  };
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const command = ['-i', ...variables, process.execPath, 'hack/images/image-files.ts', ...args];
  execFileSync('env', command, { cwd: repository, timeout: 180_000, stdio: 'pipe' });
}
