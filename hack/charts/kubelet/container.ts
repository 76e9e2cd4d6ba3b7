import { execFileSync } from 'node:child_process';
import { findBinary } from '@tollgate/testkit/processes';
import { type ContainerSpec, getField, type PodSurroundings, type VariableSpec } from './pod-spec.ts';

/** A file or folder of this machine that is mounted into a container. */
export interface ContainerMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** A program in a file system of its own. */
export interface ContainerProcess {
  /** An empty folder, where `/` is mounted. */
  readonly root: string;
  /** Mounted there, and gets mount points. A file system in memory when absent. */
  readonly rootFolder: string | undefined;
  readonly mounts: readonly ContainerMount[];
  readonly workingFolder: string;
  /** User and group. Only root can change them; otherwise the program runs as the current user. */
  readonly user: number;
  /** All of its variables. `PATH` must include the programs that set up the container, too. */
  readonly environment: Readonly<Record<string, string>>;
  /** The program, a path that the container sees, and its arguments. */
  readonly command: readonly string[];
}

/** Folders in which the kernel describes processes and devices. */
const systemFolders = ['/proc', '/dev'];

/**
 * Makes `/` of a folder or of memory, mounts all into it, makes it read-only, and becomes the
 * program. The mounts belong to a namespace that goes with the program, so nothing has to be
 * cleaned up.
 */
const script = `
set -e
root=$1 files=$2 folder=$3 user=$4
shift 4
if [ -n "$files" ]; then
  mount --bind "$files" "$root"
else
  mount -t tmpfs -o mode=0755,size=1m tmpfs "$root"
fi
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then
    mkdir -p "$root$2"
  else
    mkdir -p "$root$(dirname "$2")"
    [ -e "$root$2" ] || : >"$root$2"
  fi
  mount --rbind "$1" "$root$2"
  if [ "$3" = ro ]; then mount -o remount,bind,ro "$root$2"; fi
  shift 3
done
shift
mount -o remount,bind,ro "$root"
# The shell has added it.
unset PWD
if [ "$user" = "$(id -u)" ]; then exec unshare --root="$root" --wd="$folder" "$@"; fi
exec unshare --setgid="$user" --setuid="$user" --root="$root" --wd="$folder" "$@"
`;

/**
 * Command of a container, with any environment: test runners add to the environment of every
 * process, and `env` removes all of it.
 */
export function containerCommand(container: ContainerProcess): { command: string; args: string[] } {
  const { root, rootFolder = '', mounts, workingFolder, user, environment, command } = container;
  const system = systemFolders.map((folder) => ({ source: folder, target: folder, readOnly: false }));
  return {
    command: findBinary('env'),
    args: [
      '-i',
      ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      findBinary('unshare'),
      ...namespaces(),
      ...['/bin/sh', '-c', script, 'sh', root, rootFolder, workingFolder, isRoot() ? String(user) : '0'],
      ...[...system, ...mounts].flatMap(({ source, target, readOnly }) => [
        source,
        target,
        readOnly ? 'ro' : 'rw',
      ]),
      '--',
      ...command,
    ],
  };
}

/**
 * Why this machine gives no program a file system of its own; `false` when it does. In CI it is an
 * error.
 */
export function containersAreImpossible(): string | false {
  try {
    execFileSync(
      findBinary('unshare'),
      [...namespaces(), findBinary('mount'), '-t', 'tmpfs', 'tmpfs', '/mnt'],
      {
        stdio: 'pipe',
      },
    );
    return false;
  } catch (cause) {
    const reason = 'namespaces of Linux cannot be made here: run as root, or let users make namespaces';
    if (process.env.CI === 'true') throw new Error(reason, { cause });
    return `left out: ${reason}`;
  }
}

const isRoot = (): boolean => process.getuid?.() === 0;

const namespaces = (): string[] => (isRoot() ? ['--mount'] : ['--map-root-user', '--mount']);

/**
 * The variables of a container: `env` comes before `envFrom`, and `$(NAME)` stands for a variable
 * that is there already.
 */
export function containerEnvironment(
  { env = [], envFrom = [] }: ContainerSpec,
  surroundings: PodSurroundings,
): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const { secretRef, configMapRef } of envFrom) {
    if (secretRef !== undefined) Object.assign(variables, surroundings.secret(secretRef));
    if (configMapRef !== undefined) Object.assign(variables, surroundings.configMap(configMapRef));
  }
  for (const variable of env) {
    const value = getText(variable, variables, surroundings);
    if (value !== undefined) variables[variable.name] = value;
  }
  return variables;
}

function getText(
  { name, value = '', valueFrom }: VariableSpec,
  variables: Readonly<Record<string, string>>,
  surroundings: PodSurroundings,
): string | undefined {
  if (valueFrom === undefined) return expand(value, variables);
  const { fieldRef, secretKeyRef, configMapKeyRef } = valueFrom;
  if (fieldRef !== undefined) return getField(surroundings, fieldRef.fieldPath);
  const reference = secretKeyRef ?? configMapKeyRef;
  if (reference === undefined) throw new Error(`nothing is known of where ${name} comes from`);
  const data = secretKeyRef ? surroundings.secret(reference) : surroundings.configMap(reference);
  const found = data?.[reference.key];
  if (found === undefined && reference.optional !== true) {
    throw new Error(`${name} needs the key ${reference.key} of ${reference.name}`);
  }
  return found;
}

/**
 * `$$(NAME)` and names of variables that there are not stay as they are, the former without a `$`.
 */
function expand(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\(([^)]+)\)/g, (all, name: string | undefined) =>
    name === undefined ? '$' : (variables[name] ?? all),
  );
}
