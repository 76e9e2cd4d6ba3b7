import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The parts of an image that a container needs. */
export interface ServiceImage {
  /** A folder that becomes `/`, and gets mount points. A file system in memory when absent. */
  readonly rootFolder?: string;
  /** Files and folders of this machine that are mounted read-only, by their paths in the image. */
  readonly files: Readonly<Record<string, string>>;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  /** The arguments of a container without any. */
  readonly command: readonly string[];
  readonly user: number;
}

const repository = resolve(import.meta.dirname, '../../..');
const node = '/nodejs/bin/node';

/** Paths of a system that Node.js needs: libraries and certificate authorities. */
const libraries = ['/lib', '/lib64', '/usr/lib', '/etc/ssl'];

/**
 * The image of a service with the whole checkout in it, which takes no time to make. The Node.js
 * that runs the tests is its entry point.
 */
export function checkoutImage(service: string): ServiceImage {
  const dockerfile = readFileSync(join(repository, 'Dockerfile'), 'utf8');
  const [, ownStage = ''] =
    new RegExp(`^FROM \\S+ AS ${service}$([\\s\\S]*?)^FROM `, 'm').exec(dockerfile) ?? [];
  const [finalStage = ''] = /^FROM \$\{SERVICE\}$[\s\S]*/m.exec(dockerfile) ?? [];
  const stages = ownStage + finalStage;
  const [, command = ''] = /^CMD (.*)$/m.exec(stages) ?? [];
  const [, workingFolder = ''] = /^WORKDIR (.*)$/m.exec(stages) ?? [];
  const [, user = ''] = /^USER (\d+):/m.exec(stages) ?? [];
  const environment = [...stages.matchAll(/^ENV (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]);
  const programs = [...stages.matchAll(/^COPY --chmod=755 (\S+) (\S+)$/gm)].flatMap(
    ([, source = '', target = '']) =>
      readdirSync(join(repository, source)).map((name) => [
        join(target, name),
        join(repository, source, name),
      ]),
  );
  return {
    files: {
      ...Object.fromEntries(libraries.map((folder) => [folder, folder])),
      [workingFolder]: repository,
      [node]: process.execPath,
      ...Object.fromEntries(programs),
    },
    workingFolder,
    environment: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      ...Object.fromEntries(environment),
    },
    entrypoint: [node],
    // Parsed boundary: our own Dockerfile.
    command: JSON.parse(command) as string[],
    user: Number(user),
  };
}
